package goredis

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// noLimit is the client's own time limit: far above ours.
const noLimit = time.Hour

// withContext returns a client over the same connections whose requests end with
// their context.
func withContext(c *goredis.Client) *goredis.Client {
	ours := c.WithTimeout(noLimit)
	// The options are a copy, and the library reads this one at each request.
	ours.Options().ContextTimeoutEnabled = true
	return ours
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// testIdle tests all idle connections of the program's client at once, in the
// background, and drops those without an answer within limit. Otherwise each of
// them would cost one request.
func (d *driver) testIdle(limit time.Duration) {
	if d.testing.Swap(true) {
		return
	}
	go func() {
		defer d.testing.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		var all sync.WaitGroup
		for range d.theirs.PoolStats().IdleConns {
			// It keeps its connection until it is closed, after all have one:
			// so none is tested twice.
			conn := d.theirs.Conn()
			defer conn.Close()
			all.Go(func() { conn.Ping(ctx) })
		}
		all.Wait()
	}()
}
