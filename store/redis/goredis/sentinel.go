package goredis

import (
	"context"
	"net"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/store/redis/internal/sentinels"
)

// ListedReplicas asks the sentinels. Those of a client that is not ours are not
// known.
func (d *driver) ListedReplicas(ctx context.Context) (n int, known bool, err error) {
	a := d.sentinel
	if a == nil {
		return 0, false, nil
	}
	n, err = sentinels.Replicas(ctx, a.Hosts, func(ctx context.Context, host string) (map[string]string, error) {
		client := goredis.NewSentinelClient(&goredis.Options{
			Addr: host, Username: a.SentinelUsername, Password: a.SentinelPassword,
			ClientName: "redlatch", DisableIdentity: true, MaxRetries: noRetries, ContextTimeoutEnabled: true, PoolSize: 1,
			Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
				return d.sentinels.Dial(ctx, network, address, a.TLS)
			},
		})
		defer client.Close()
		state, err := client.Master(ctx, a.Master).Result()
		return state, wrap(err)
	})
	return n, true, err
}
