//go:build unix

package redis_test

import (
	"context"
	"sync/atomic"
	"testing"

	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/goredis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// tap is between a node and its driver: it lets a test intervene.
type tap struct {
	redis.Subscriber

	// confirming is called when the server has confirmed a subscription and the
	// node has not been notified yet, and confirmed after that. Both may be nil.
	confirming, confirmed func()

	// delay is called before each request is sent and each message is passed
	// on, and may block. It may be nil.
	delay func()

	numbers atomic.Int32 // how many replies were numbers
}

func (d *tap) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	if d.delay != nil {
		d.delay()
	}
	reply, err := d.Subscriber.Eval(ctx, call)
	if len(reply) == 1 {
		d.numbers.Add(1)
	}
	return reply, err
}

func (d *tap) Subscribe(ctx context.Context, channel string, up func(), message func(text string)) error {
	call := func(f func()) {
		if f != nil {
			f()
		}
	}
	return d.Subscriber.Subscribe(ctx, channel, func() {
		call(d.confirming)
		up()
		call(d.confirmed)
	}, func(text string) {
		call(d.delay)
		message(text)
	})
}

// subscribers make a driver of each kind for a server.
var subscribers = map[string]func(t testing.TB, s *servertest.Server) redis.Driver{
	"rueidis": func(t testing.TB, s *servertest.Server) redis.Driver {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{s.Addr()}, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
		})
		must(t, err)
		t.Cleanup(client.Close)
		d, err := rueidis.Driver(client)
		must(t, err)
		return d
	},
	"goredis": func(t testing.TB, s *servertest.Server) redis.Driver {
		client := goredisclient.NewClient(&goredisclient.Options{Addr: s.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
		t.Cleanup(func() { client.Close() })
		d, err := goredis.Driver(client)
		must(t, err)
		return d
	},
}

// newTap returns a tap on a driver of the given kind for a server.
func newTap(t testing.TB, kind string, s *servertest.Server) *tap {
	t.Helper()
	return &tap{Subscriber: subscribers[kind](t, s).(redis.Subscriber)}
}

// tapped returns the nodes of taps.
func tapped(servers []*servertest.Server, taps ...*tap) []node.Node {
	var nodes []node.Node
	for i, d := range taps {
		nodes = append(nodes, redis.New(d, servers[i].URL()))
	}
	return nodes
}
