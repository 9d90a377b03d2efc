package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestOnceDoesNotRunAgainThoughAServerLostItsData completes an occurrence on
// servers 1 and 2 while 3 is away. Server 2 is emptied, and then 1 cannot be
// reached: nothing runs before it is back.
func TestOnceDoesNotRunAgainThoughAServerLostItsData(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	opts := redlatch.Options{TTL: time.Second, Cluster: redlatch.Cluster{MaxTTL: time.Second}, NodeTimeout: 500 * time.Millisecond}
	fresh := opts
	fresh.AssumeFresh = true
	first := newClient(t, open(t, servertest.Addresses(servers)...), fresh)
	passBy(t, first, "other")
	once := func(c *redlatch.Client) (bool, error) {
		return c.Once(context.Background(), "job", "monday", &redlatch.LockOptions{Wait: 30 * time.Second}, func(context.Context, *redlatch.Lease) error { return nil })
	}
	servers[2].Freeze()
	if ran, err := once(first); !ran || err != nil {
		t.Fatalf("%v, %v; want that it ran", ran, err)
	}
	servers[2].Thaw()
	// A frozen server executes later what it was sent. This one was away.
	time.Sleep(time.Second)
	servers[2].Do("DEL", "redlatch:1:completed:{job}", "redlatch:1:memory:{job}")
	servers[1].Do("FLUSHALL")
	time.Sleep(4 * time.Second) // longer than clocks are apart that began together
	passBy(t, first, "other")   // marks the server
	time.Sleep(5 * time.Second) // its quarantine
	servers[0].Freeze()
	c := newClient(t, open(t, servertest.Addresses(servers)...), opts)
	if ran, err := once(c); ran || err == nil {
		t.Errorf("%v, %v; want an error: it is unknown whether it ran", ran, err)
	} else {
		t.Log(err)
	}
	servers[0].Thaw()
	if ran, err := once(c); ran || err != nil {
		t.Errorf("%v, %v; want that it is completed", ran, err)
	}
}

// passBy holds a lock for a moment.
func passBy(t *testing.T, c *redlatch.Client, name string) {
	t.Helper()
	l, err := c.Lock(context.Background(), name, &redlatch.LockOptions{Wait: 30 * time.Second})
	must(t, err)
	must(t, l.Release(context.Background()))
}
