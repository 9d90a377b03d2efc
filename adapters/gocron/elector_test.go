//go:build unix

package redlatchgocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	redlatchgocron "github.com/redlatch/redlatch/adapters/gocron"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/memory"
)

func newElector(t *testing.T, servers []*servertest.Server, opts redlatchgocron.ElectorOptions) *redlatchgocron.Elector {
	t.Helper()
	e, err := redlatchgocron.NewElector(newClient(t, servers), "scheduler", &opts)
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func leads(e *redlatchgocron.Elector) bool { return e.IsLeader(context.Background()) == nil }

func TestOneReplicaLeadsAndTheNextOneWhenItCloses(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	// Nobody could wait for as long as a lock lives.
	opts := redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{TTL: 30 * time.Second}}
	a := newElector(t, servers, opts)
	poll.Until(t, "the first replica leads", func() bool { return leads(a) })
	b := newElector(t, servers, opts)
	first := a.Lease().Token()
	await(t, a.Lease().Contended(), "the second one is a candidate")
	if err := b.IsLeader(t.Context()); !errors.Is(err, redlatchgocron.ErrNotLeader) || b.Lease() != nil {
		t.Errorf("the second one gets %v, want ErrNotLeader", err)
	}
	must(t, a.Close())
	if err := a.IsLeader(t.Context()); !errors.Is(err, redlatchgocron.ErrNotLeader) || !errors.Is(err, redlatch.ErrClosed) {
		t.Errorf("after Close, the first one gets %v", err)
	}
	poll.Until(t, "the second one leads", func() bool { return leads(b) })
	if second := b.Lease().Token(); second <= first {
		exclusion.Never(t, "token %v follows %v", second, first)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.IsLeader(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended, the leader gets %v", err)
	}
}

// suspended is the clock of a machine that was suspended, for as long as a test
// says.
type suspended struct{ time atomic.Int64 }

func (c *suspended) Now() time.Time { return time.Now().Add(time.Duration(c.time.Load())) }

func (c *suspended) Uptime() time.Duration { return time.Duration(c.time.Load()) + time.Since(begin) }

var begin = time.Now()

// Timers do not notice in that moment that the lease has ended.
func TestReplicaThatWasSuspendedDoesNotLead(t *testing.T) {
	t.Parallel()
	clock := &suspended{}
	opts := locktest.WithClock(redlatch.Options{}, clock)
	locks, err := redlatch.New([]redlatch.Node{memory.New(nil)}, &opts)
	must(t, err)
	defer locks.Close()
	e, err := redlatchgocron.NewElector(locks, "scheduler", &redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{TTL: 30 * time.Second}})
	must(t, err)
	defer e.Close()
	poll.Until(t, "the replica leads", func() bool { return leads(e) })
	clock.time.Add(int64(time.Minute))
	if err := e.IsLeader(t.Context()); !errors.Is(err, redlatchgocron.ErrNotLeader) || !errors.Is(err, redlatch.ErrLost) {
		t.Errorf("after a suspension, it gets %v, want ErrLost", err)
	}
	poll.Until(t, "the replica leads again", func() bool { return leads(e) })
}

// An elector goes on after an error that does not end by itself, and says what
// it is.
func TestElectionThatCannotBeSaysWhy(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 1)
	e := newElector(t, servers, redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{TTL: time.Hour}})
	poll.Until(t, "the error is reported", func() bool {
		err := e.IsLeader(context.Background())
		return errors.Is(err, redlatchgocron.ErrNotLeader) && errors.Is(err, redlatch.ErrConfig)
	})
}

func TestElectorEndsWithItsClient(t *testing.T) {
	t.Parallel()
	locks := newClient(t, servertest.Redis(t, 1))
	e, err := redlatchgocron.NewElector(locks, "scheduler", nil)
	must(t, err)
	poll.Until(t, "the replica leads", func() bool { return leads(e) })
	locks.Close()
	poll.Until(t, "the elector has ended", func() bool { return errors.Is(e.IsLeader(context.Background()), redlatch.ErrClosed) })
	e.Close()
}
