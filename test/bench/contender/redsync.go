package contender

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// pool connects to a server.
type pool func(address string) (redis.Pool, error)

func goRedisPool(address string) (redis.Pool, error) {
	return redsyncgoredis.NewPool(goRedisClient(address)), nil
}

func rueidisPool(address string) (redis.Pool, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true})
	return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)), err
}

// openRedsync leaves its connections to the end of the process.
func openRedsync(connect pool, more ...redsync.Option) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		var list []redis.Pool
		for _, a := range addresses {
			p, err := connect(a)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
		rs := redsync.New(list...)
		options := append([]redsync.Option{redsync.WithExpiry(TTL), redsync.WithTries(math.MaxInt32)}, more...)
		return &Locker{
			Lock: func(ctx context.Context, name string) (Release, error) {
				m := rs.NewMutex(name, options...)
				if err := m.LockContext(ctx); err != nil {
					return nil, err
				}
				return unlock(m), nil
			},
			Close: func() {},
		}, nil
	}
}

func unlock(m *redsync.Mutex) Release {
	return func(ctx context.Context) error {
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("redsync: no quorum released the lock")
		}
		return err
	}
}
