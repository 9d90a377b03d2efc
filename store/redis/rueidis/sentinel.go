package rueidis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
	"github.com/redlatch/redlatch/store/redis/internal/sentinels"
)

// ListedReplicas asks the sentinels. Those of a client that is not ours are not
// known.
func (d *driver) ListedReplicas(ctx context.Context) (n int, known bool, err error) {
	if d.sentinel == nil {
		return 0, false, nil
	}
	n, err = sentinels.Replicas(ctx, d.sentinel.Hosts, d.askSentinel)
	return n, true, err
}

// askSentinel sends SENTINEL MASTER on a connection of its own.
func (d *driver) askSentinel(ctx context.Context, host string) (map[string]string, error) {
	a := *d.sentinel
	a.Kind, a.Hosts, a.Database = redis.Single, []string{host}, 0
	a.Username, a.Password = a.SentinelUsername, a.SentinelPassword
	var client rueidis.Client
	var err error
	opened := make(chan struct{})
	go func() { // the library connects without a context
		defer close(opened)
		client, err = opener(&a, new(conns.Group))()
	}()
	select {
	case <-opened:
	case <-ctx.Done():
		go func() {
			if <-opened; err == nil {
				client.Close()
			}
		}()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	defer client.Close()
	state, err := client.Do(ctx, client.B().Arbitrary("SENTINEL", "MASTER", a.Master).Build()).AsStrMap()
	return state, wrap(err)
}
