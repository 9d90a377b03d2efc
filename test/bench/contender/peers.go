package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-zookeeper/zk"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/redlatch/redlatch"
)

func goRedisClient(address string) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: address, ContextTimeoutEnabled: true})
}

func openRedislock(_ context.Context, addresses []string) (*Locker, error) {
	c := goRedisClient(addresses[0])
	locks := redislock.New(c)
	return &Locker{
		Lock: func(ctx context.Context, name string) (Release, error) {
			// Without a deadline it gives up after the lock's time to live.
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			lock, err := locks.Obtain(ctx, name, TTL, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
			if err != nil {
				return nil, err
			}
			return lock.Release, nil
		},
		Close: func() { c.Close() },
	}, nil
}

func openRueidislock(_ context.Context, addresses []string) (*Locker, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: addresses, ForceSingleClient: true},
		KeyValidity:    TTL,
		KeyMajority:    1,
		NoLoopTracking: true,
		// Its default of 20 ms is too short for a crowded machine: a try that
		// takes longer is given up, and then waits for a notification, which
		// does not come if no other client has the lock.
		TryNextAfter: 250 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	return &Locker{
		// This lock ends with ctx, unlike that of all other clients. The bench ends
		// its contexts only when a measurement is over.
		Lock: func(ctx context.Context, name string) (Release, error) {
			held, release, err := locks.WithContext(ctx, name)
			if err != nil {
				return nil, err
			}
			return func(context.Context) error {
				err := context.Cause(held) // not nil if the lock was lost
				release()                  // returns when the key is gone
				return err
			}, nil
		},
		Close: locks.Close,
	}, nil
}

func openEtcd(_ context.Context, addresses []string) (*Locker, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: addresses, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	l, err := etcdSession(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	// Two mutexes of one session and one name are the same lock and do not
	// exclude each other.
	l.Fork = func() (*Locker, error) { return etcdSession(c) }
	end := l.Close
	l.Close = func() { end(); c.Close() }
	return l, nil
}

// etcdSession opens a session: its lease keeps all its locks alive.
func etcdSession(c *clientv3.Client) (*Locker, error) {
	session, err := concurrency.NewSession(c, concurrency.WithTTL(int(TTL/time.Second)))
	if err != nil {
		return nil, err
	}
	return &Locker{
		Lock: func(ctx context.Context, name string) (Release, error) {
			m := concurrency.NewMutex(session, name)
			if err := m.Lock(ctx); err != nil {
				return nil, err
			}
			return func(context.Context) error {
				select {
				case <-session.Done():
					return fmt.Errorf("etcd: the session ended: %w", redlatch.ErrLost)
				default:
				}
				// A release has more time than those of the others: on a crowded
				// machine etcd needs it, and one that is given up keeps everyone
				// waiting.
				ctx, cancel := context.WithTimeout(context.Background(), TTL)
				defer cancel()
				return m.Unlock(ctx)
			}, nil
		},
		Close: func() { session.Close() },
	}, nil
}

func openZKLock(_ context.Context, addresses []string) (*Locker, error) {
	conn, _, err := zk.Connect(addresses, TTL, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return nil, err
	}
	return &Locker{
		// It heeds no context. At the end of a measurement all get the lock once more.
		Lock: func(ctx context.Context, name string) (Release, error) {
			l := zk.NewLock(conn, "/"+name, zk.WorldACL(zk.PermAll))
			if err := l.Lock(); err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, errors.Join(err, l.Unlock())
			}
			return func(context.Context) error { return l.Unlock() }, nil
		},
		Close: conn.Close,
	}, nil
}
