//go:build unix

// Package service_test has a service on redsync and one on redlatch share servers
// that fail.
package service_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/interop/beside"
	"github.com/redlatch/redlatch/test/interop/foreign"
)

var must = check.Must

const (
	name = "shared"
	ttl  = time.Second
	// Cluster parameters with a quarantine of a little over two seconds.
	maxTTL = 2 * time.Second
	window = 600 * time.Millisecond
	// retryDelay is about that of redsync's side: a side that asks less often is
	// served less often.
	retryDelay = 40 * time.Millisecond
	// mostTime limits what takes a moment, on a busy machine.
	mostTime = 3 * time.Minute
	// leastKills is how many servers must have been killed for the verdict to count.
	leastKills = 5
)

// TestMain lets the test's own program be a process of redsync's side, and keeps
// go-redis from logging that killed servers cannot be reached.
func TestMain(m *testing.M) {
	logging.Disable()
	foreign.Become(foreign.InProcess()...)
	os.Exit(m.Run())
}

func newRedlatch(t testing.TB, servers []*servertest.Server, opts redlatch.Options) *redlatch.Client {
	nodes, err := direct.Nodes(servertest.Addresses(servers)...)
	must(t, err)
	if opts.MaxTTL == 0 {
		opts.MaxTTL = maxTTL
	}
	opts.TokenWindow, opts.AssumeFresh, opts.RetryDelay = window, true, retryDelay
	opts.NodeTimeout = time.Second // others share this machine
	c, err := redlatch.New(nodes, &opts)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	if opts.Guard != redlatch.GuardOff {
		must(t, fresh.Declare(context.Background(), c))
	}
	return c
}

func newRedsync(t testing.TB, servers []*servertest.Server) *redsync.Redsync {
	var pools []redis.Pool
	for _, s := range servers {
		c := goredis.NewClient(&goredis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
		t.Cleanup(func() { c.Close() })
		pools = append(pools, redsyncgoredis.NewPool(c))
	}
	return redsync.New(pools...)
}

// share has two services contend for a while, each in two processes with two
// workers, while one server at a time is killed and restarts with its data.
func share(t *testing.T, lasts time.Duration, opts redlatch.Options) *beside.Judge {
	servers := servertest.Redis(t, 5, kept...)
	addresses := servertest.Hosts(servers)
	j := beside.NewJudge(name, servers)
	j.NoFences = true // redsync has none
	c := beside.Contest{Judge: j, Name: name, TTL: ttl, Long: true, For: lasts, Limit: mostTime, Turns: 10, Sides: map[string][]beside.Contender{}}
	for range 2 {
		locks := newRedlatch(t, servers, opts)
		for range 2 {
			p, err := foreign.Start(foreign.InProcess()[0], addresses)
			must(t, err)
			t.Cleanup(p.Kill)
			c.Sides["redsync"] = append(c.Sides["redsync"], &beside.Foreign{Process: p})
			c.Sides["redlatch"] = append(c.Sides["redlatch"], &beside.Client{Client: locks})
		}
	}
	var kills atomic.Int32
	c.Enough = func() bool { return kills.Load() >= leastKills }
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			s := servers[i%len(servers)]
			s.Kill()
			kills.Add(1)
			time.Sleep(rand.N(600 * time.Millisecond))
			s.Restart()
			// redlatch quarantines a server that was down. The pause leaves it a
			// quorum to spare.
			select {
			case <-over:
				return
			case <-time.After(2500 * time.Millisecond):
			}
		}
	}()
	errs := c.Play()
	close(over)
	<-ended
	t.Logf("redlatch had the lock %d times, redsync %d times, %d servers were killed, %d answers were errors",
		j.Turns("redlatch"), j.Turns("redsync"), kills.Load(), len(errs))
	if len(j.Faults()) == 0 && (j.Turns("redlatch") < 10 || j.Turns("redsync") < 10 || kills.Load() < leastKills) {
		t.Error("too little to judge by")
	}
	return j
}

// TestRedsyncAndRedlatchShareAQuorumWhileServersAreKilledAndRestarted lets no
// server forget anything. Then redsync's own rules allow no overlap, and
// neither do ours.
func TestRedsyncAndRedlatchShareAQuorumWhileServersAreKilledAndRestarted(t *testing.T) {
	t.Parallel()
	for _, fault := range share(t, 15*time.Second, redlatch.Options{}).Faults() {
		t.Error(fault)
	}
}

// TestServicesThatDoNotSeeEachOtherAreFoundOut is the same run with redlatch on
// another key, where the judge must find two holders.
func TestServicesThatDoNotSeeEachOtherAreFoundOut(t *testing.T) {
	t.Parallel()
	faults := share(t, mostTime, redlatch.Options{Prefix: "not-"}).Faults()
	if len(faults) == 0 || !strings.Contains(faults[0], "two had the lock") {
		t.Errorf("the judge sees %q", faults)
	}
}
