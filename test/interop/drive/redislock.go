package drive

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

type redislockLock struct {
	locks *redislock.Client
	lock  *redislock.Lock
}

// Redislock returns bsm/redislock over go-redis, on the first address.
func Redislock(addresses []string) (string, Lock) {
	client := goredis.NewClient(&goredis.Options{Addr: addresses[0]})
	return Module("github.com/bsm/redislock"), &redislockLock{locks: redislock.New(client)}
}

func (l *redislockLock) Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	lock, err := l.locks.Obtain(ctx, name, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	l.lock = lock
	return err == nil, err
}

func (l *redislockLock) Extend(ctx context.Context, ttl time.Duration) (bool, error) {
	err := l.lock.Refresh(ctx, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	return err == nil, err
}

func (l *redislockLock) Release(ctx context.Context) (bool, error) {
	err := l.lock.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}
