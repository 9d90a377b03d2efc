package system

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

type redislockLocker struct {
	client *goredis.Client
	locks  *redislock.Client
}

func openRedislock(_ context.Context, addresses []string) (Locker, error) {
	c := goRedisClient(addresses[0])
	return &redislockLocker{client: c, locks: redislock.New(c)}, nil
}

func (l *redislockLocker) Lock(ctx context.Context, name string) (Held, error) {
	// Without a deadline it gives up after the lock's time to live.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	lock, err := l.locks.Obtain(ctx, name, TTL, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	if err != nil {
		return nil, err
	}
	return heldFunc(lock.Release), nil
}

func (l *redislockLocker) Close() { l.client.Close() }
