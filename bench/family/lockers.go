package family

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	rueidisclient "github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redis/rueidis"
)

// lockers are the contenders in Go, by the key of their peer.
var lockers = map[string]func(Config) (locker, error){
	"redlatch":      func(c Config) (locker, error) { return openRedlatch(c, redlatch.Options{}, redlatch.LockOptions{}) },
	"redlatch-bare": func(c Config) (locker, error) { return openRedlatch(c, bare, redlatch.LockOptions{}) },
	"redlatch-barge": func(c Config) (locker, error) {
		return openRedlatch(c, redlatch.Options{}, redlatch.LockOptions{Barge: true})
	},
	"redsync-names": openRedsyncNames,
}

var bare = redlatch.Options{NoToken: true, Guard: redlatch.GuardOff}

func openRedlatch(c Config, options redlatch.Options, each redlatch.LockOptions) (locker, error) {
	options.TTL, options.NodeList = time.Duration(c.TTLMS)*time.Millisecond, c.NodeList
	client, err := newRedlatch(c.Addresses, options)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string, write bool) (func(context.Context) error, error) {
		each := each
		each.Slots = c.Limit
		each.Shared = c.Limit == 0 && !write
		lease, err := client.Lock(ctx, name, each)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}, nil
}

func newRedlatch(addresses []string, options redlatch.Options) (*redlatch.Client, error) {
	urls := make([]string, len(addresses))
	for i, a := range addresses {
		urls[i] = "redis://" + a
	}
	nodes, err := rueidis.Nodes(urls...)
	if err != nil {
		return nil, err
	}
	return redlatch.New(nodes, options)
}

// redsync's own delays between two tries.
const (
	redsyncLeast = 50 * time.Millisecond
	redsyncMost  = 250 * time.Millisecond
)

var errNotReleased = errors.New("redsync: no quorum released the lock")

// openRedsyncNames makes slots of a lock that has none: one name for each slot,
// tried in turn from a random one on, and redsync's own delay after a turn in
// which all were taken.
func openRedsyncNames(c Config) (locker, error) {
	if c.Limit == 0 {
		return nil, errors.New("redsync has no readers")
	}
	var pools []redis.Pool
	for _, a := range c.Addresses {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{a}, ForceSingleClient: true})
		if err != nil {
			return nil, err
		}
		pools = append(pools, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(client)))
	}
	rs := redsync.New(pools...)
	ttl := redsync.WithExpiry(time.Duration(c.TTLMS) * time.Millisecond)
	return func(ctx context.Context, name string, _ bool) (func(context.Context) error, error) {
		for {
			from := rand.IntN(c.Limit)
			for i := range c.Limit {
				m := rs.NewMutex(fmt.Sprintf("%s/%d", name, (from+i)%c.Limit), ttl)
				err := m.TryLockContext(ctx)
				if err == nil {
					return func(ctx context.Context) error {
						ok, err := m.UnlockContext(ctx)
						if err == nil && !ok {
							err = errNotReleased
						}
						return err
					}, nil
				}
				// Any error is a refusal, as in redsync's own loop of tries.
				if ctx.Err() != nil {
					return nil, err
				}
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(redsyncLeast + rand.N(redsyncMost-redsyncLeast)):
			}
		}
	}, nil
}
