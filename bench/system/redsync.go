package system

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

type redsyncLocker struct {
	sync    *redsync.Redsync
	options []redsync.Option
	close   func()
}

func openRedsync(
	pools func([]string) ([]redis.Pool, func(), error), more ...func() redsync.Option,
) func(context.Context, []string) (Locker, error) {
	return func(_ context.Context, addresses []string) (Locker, error) {
		list, closeAll, err := pools(addresses)
		if err != nil {
			return nil, err
		}
		options := []redsync.Option{redsync.WithExpiry(TTL), redsync.WithTries(math.MaxInt32)}
		for _, m := range more {
			options = append(options, m())
		}
		return &redsyncLocker{sync: redsync.New(list...), options: options, close: closeAll}, nil
	}
}

func failFast() redsync.Option { return redsync.WithFailFast(true) }

var errNotReleased = errors.New("redsync: no quorum released the lock")

func (l *redsyncLocker) Lock(ctx context.Context, name string) (Held, error) {
	m := l.sync.NewMutex(name, l.options...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return heldFunc(func(ctx context.Context) error {
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errNotReleased
		}
		return err
	}), nil
}

func (l *redsyncLocker) Close() { l.close() }

func goRedisClient(address string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: address, ContextTimeoutEnabled: true})
}

func goRedisPools(addresses []string) ([]redis.Pool, func(), error) {
	var pools []redis.Pool
	var clients []*goredis.Client
	for _, a := range addresses {
		c := goRedisClient(a)
		clients = append(clients, c)
		pools = append(pools, redsyncgoredis.NewPool(c))
	}
	return pools, func() {
		for _, c := range clients {
			c.Close()
		}
	}, nil
}

func rueidisPools(addresses []string) ([]redis.Pool, func(), error) {
	var pools []redis.Pool
	var clients []rueidis.Client
	closeAll := func() {
		for _, c := range clients {
			c.Close()
		}
	}
	for _, a := range addresses {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{a}, ForceSingleClient: true})
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, c)
		pools = append(pools, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)))
	}
	return pools, closeAll, nil
}
