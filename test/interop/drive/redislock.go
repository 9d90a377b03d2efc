package drive

import (
	"context"
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
	if err == nil {
		l.lock = lock
	}
	return done(err, redislock.ErrNotObtained)
}

func (l *redislockLock) Extend(ctx context.Context, ttl time.Duration) (bool, error) {
	return done(l.lock.Refresh(ctx, ttl, nil), redislock.ErrNotObtained)
}

func (l *redislockLock) Release(ctx context.Context) (bool, error) {
	return done(l.lock.Release(ctx), redislock.ErrLockNotHeld)
}
