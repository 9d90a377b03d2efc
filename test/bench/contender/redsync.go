package contender

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// pool connects to a server, and returns what closes the connection.
type pool func(address string) (redis.Pool, func(), error)

func goRedisPool(address string) (redis.Pool, func(), error) {
	c := goRedisClient(address)
	return redsyncgoredis.NewPool(c), func() { c.Close() }, nil
}

func rueidisPool(address string) (redis.Pool, func(), error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true})
	if err != nil {
		return nil, nil, err
	}
	return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)), c.Close, nil
}

// newRedsync connects to the servers, and returns what closes all connections.
func newRedsync(connect pool, addresses []string) (rs *redsync.Redsync, closeAll func(), err error) {
	var list []redis.Pool
	closeAll = func() {}
	for _, a := range addresses {
		p, end, err := connect(a)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		before := closeAll
		list, closeAll = append(list, p), func() { before(); end() }
	}
	return redsync.New(list...), closeAll, nil
}

func failFast() redsync.Option { return redsync.WithFailFast(true) }

func openRedsync(connect pool, more ...func() redsync.Option) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		rs, closeAll, err := newRedsync(connect, addresses)
		if err != nil {
			return nil, err
		}
		options := []redsync.Option{redsync.WithExpiry(TTL), redsync.WithTries(math.MaxInt32)}
		for _, m := range more {
			options = append(options, m())
		}
		return &Locker{
			Lock: func(ctx context.Context, l Lock) (Release, error) {
				m := rs.NewMutex(l.Name, options...)
				if err := m.LockContext(ctx); err != nil {
					return nil, err
				}
				return unlock(m), nil
			},
			Close: closeAll,
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

// redsync's own delays between two tries.
const (
	redsyncLeast = 50 * time.Millisecond
	redsyncMost  = 250 * time.Millisecond
)

// openRedsyncNames makes slots of a lock that has none: one name for each slot,
// tried in turn from a random one on, and redsync's own delay after a turn in
// which all were taken.
func openRedsyncNames(_ context.Context, addresses []string) (*Locker, error) {
	rs, closeAll, err := newRedsync(rueidisPool, addresses)
	if err != nil {
		return nil, err
	}
	return &Locker{
		Lock: func(ctx context.Context, l Lock) (Release, error) {
			for n := max(l.Slots, 1); ; {
				from := rand.IntN(n)
				for i := range n {
					m := rs.NewMutex(fmt.Sprintf("%s/%d", l.Name, (from+i)%n), redsync.WithExpiry(TTL))
					err := m.TryLockContext(ctx)
					if err == nil {
						return unlock(m), nil
					}
					// Any error is a refusal, as in redsync's own loop of tries.
					if ctx.Err() != nil {
						return nil, err
					}
				}
				if err := pause(ctx, redsyncLeast+rand.N(redsyncMost-redsyncLeast)); err != nil {
					return nil, err
				}
			}
		},
		Close: closeAll,
	}, nil
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
