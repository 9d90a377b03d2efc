package redlatchgocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	redlatchgocron "github.com/redlatch/redlatch/adapters/gocron"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/store/memory"
)

// newElector returns an elector after its first attempt to lead.
func newElector(t *testing.T, locks *redlatch.Client, ttl time.Duration) *redlatchgocron.Elector {
	t.Helper()
	e, err := redlatchgocron.NewElector(locks, "scheduler", &redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{TTL: ttl}})
	must(t, err)
	t.Cleanup(func() { e.Close() })
	synctest.Wait()
	return e
}

func TestOneReplicaLeadsAndTheNextOneWhenItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		start := func() *redlatchgocron.Elector {
			return newElector(t, locktest.NewClient(t, nodes, redlatch.Options{}), 30*time.Second)
		}
		a := start()
		must(t, a.IsLeader(t.Context()))
		b := start()
		first := a.Lease().Token()
		locktest.WantErr(t, b.IsLeader(t.Context()), redlatchgocron.ErrNotLeader)
		if b.Lease() != nil {
			t.Error("the second one has a lease")
		}
		must(t, a.Close())
		locktest.WantErr(t, a.IsLeader(t.Context()), redlatchgocron.ErrNotLeader, redlatch.ErrClosed)
		time.Sleep(time.Second) // far less than a lock lives
		must(t, b.IsLeader(t.Context()))
		if second := b.Lease().Token(); second <= first {
			exclusion.Never(t, "token %v follows %v", second, first)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		locktest.WantErr(t, b.IsLeader(ctx), context.Canceled)
	})
}

// suspended is the clock of a machine that was suspended, for as long as a test
// says.
type suspended struct {
	begin time.Time
	time  atomic.Int64
}

func (c *suspended) Now() time.Time { return time.Now().Add(time.Duration(c.time.Load())) }

func (c *suspended) Uptime() time.Duration { return time.Duration(c.time.Load()) + time.Since(c.begin) }

// Timers do not notice in that moment that the lease has ended.
func TestReplicaThatWasSuspendedDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &suspended{begin: time.Now()}
		locks := locktest.NewClient(t, memory.Nodes(1), locktest.WithClock(redlatch.Options{}, clock))
		e := newElector(t, locks, 30*time.Second)
		must(t, e.IsLeader(t.Context()))
		clock.time.Add(int64(time.Minute))
		locktest.WantErr(t, e.IsLeader(t.Context()), redlatchgocron.ErrNotLeader, redlatch.ErrLost)
		time.Sleep(time.Minute)
		must(t, e.IsLeader(t.Context()))
	})
}

// An elector goes on after an error that does not end by itself, and says what
// it is. It ends with its client.
func TestElectionThatCannotBeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{})
		e := newElector(t, locks, time.Hour)
		locktest.WantErr(t, e.IsLeader(t.Context()), redlatchgocron.ErrNotLeader, redlatch.ErrConfig)
		leader := newElector(t, locks, 30*time.Second)
		must(t, leader.IsLeader(t.Context()))
		locks.Close()
		synctest.Wait()
		if err := leader.IsLeader(t.Context()); !errors.Is(err, redlatch.ErrClosed) {
			t.Errorf("without its client, it gets %v", err)
		}
	})
}
