package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/observe"
)

// slowly makes every request and every reply on a link take half of d.
func slowly(links []*locktest.Link, d time.Duration) {
	for _, l := range links {
		l.Set(func(l *locktest.Link) { l.Out, l.Back = d/2, d/2 })
	}
}

// TestMomentOfStarvationIsWaitedOut has all nodes answer late, as on a busy
// machine, but within the limits that the TTL allows.
func TestMomentOfStarvationIsWaitedOut(t *testing.T) {
	for _, n := range []int{1, 5} {
		for _, c := range []struct{ ttl, late time.Duration }{
			{0, 900 * time.Millisecond}, // the default, 10 s
			{3 * time.Second, 280 * time.Millisecond},
			{30 * time.Second, 1900 * time.Millisecond},
		} {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, n)
				client := locktest.NewClient(t, nodes, redlatch.Options{})
				slowly(links, c.late)
				l, err := client.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: c.ttl})
				if err != nil {
					t.Fatalf("TTL %v, answers after %v: %v", c.ttl, c.late, err)
				}
				if err := l.Extend(t.Context()); err != nil {
					t.Errorf("TTL %v, answers after %v: %v", c.ttl, c.late, err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("TTL %v, answers after %v: %v", c.ttl, c.late, err)
				}
				time.Sleep(time.Minute) // what came late is undone
				locktest.WantFree(t, links, "job")
			})
		}
	}
}

// TestTimeLimitLeavesRoomForAnotherTry freezes the only node. With a short TTL
// the limit is short, so that a second try can save the lease.
func TestTimeLimitLeavesRoomForAnotherTry(t *testing.T) {
	for _, c := range []struct{ ttl, limit, set time.Duration }{
		{100 * time.Millisecond, 100 * time.Millisecond, 0},
		{time.Second, 250 * time.Millisecond, 0},
		{5 * time.Second, 500 * time.Millisecond, 0},
		{30 * time.Second, 2 * time.Second, 0},
		{30 * time.Second, 100 * time.Millisecond, 100 * time.Millisecond}, // an explicit value is used
		{5 * time.Second, 4 * time.Second, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 1)
			client := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: c.set})
			links[0].Freeze()
			start := time.Now()
			_, err := client.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: c.ttl})
			locktest.WantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrNodeTimeout)
			if took := time.Since(start); took != c.limit {
				t.Errorf("TTL %v, NodeTimeout %v: a node was waited for for %v, want %v", c.ttl, c.set, took, c.limit)
			}
		})
	}
}

// TestMinorityThatIsFrozenHoldsUpNoDecision has a quorum answer without a
// decision. The client waits for the other nodes for a moment only, not for the
// whole limit.
func TestMinorityThatIsFrozenHoldsUpNoDecision(t *testing.T) {
	for _, c := range []struct{ answers, want time.Duration }{
		{0, 250 * time.Millisecond},
		{100 * time.Millisecond, 400 * time.Millisecond}, // slow nodes: four times what the others took
	} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 5)
			client := locktest.NewClient(t, nodes, redlatch.Options{})
			// Two nodes refuse and one grants: only the two silent ones could
			// decide it.
			links[0].Take(t, "job", "another", time.Hour)
			links[1].Take(t, "job", "another", time.Hour)
			slowly(links, c.answers)
			links[3].Freeze()
			links[4].Freeze()
			for i := range 3 {
				start, want := time.Now(), c.answers
				if i == 0 {
					want = c.want
				}
				_, err := client.TryLock(t.Context(), "job", nil)
				locktest.WantErr(t, err, redlatch.ErrHeld)
				if took := time.Since(start); took != want {
					t.Errorf("answers after %v: round %d took %v, want %v", c.answers, i+1, took, want)
				}
				time.Sleep(time.Second) // what was granted is undone
			}
		})
	}
}

// firstRound is an observer that keeps the result of the first round.
type firstRound struct{ end *observe.RoundEnd }

func (f *firstRound) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }
func (f *firstRound) LockEnd(context.Context, observe.LockEnd)                           {}

func (f *firstRound) RoundEnd(_ context.Context, end observe.RoundEnd) {
	if f.end == nil {
		f.end = &end
	}
}

// TestLimitThatIsNoLongerThanPatienceEndsTheRound has the node time limit end
// at the moment when a quorum without a decision stops waiting for the other
// nodes. The silent nodes have then timed out.
func TestLimitThatIsNoLongerThanPatienceEndsTheRound(t *testing.T) {
	for range 20 { // two timers for the same moment would make it random
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 5)
			var saw firstRound
			client := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 50 * time.Millisecond, Observer: &saw})
			// Two nodes refuse and one grants: only the two silent ones could
			// decide it.
			links[0].Take(t, "job", "another", time.Hour)
			links[1].Take(t, "job", "another", time.Hour)
			links[3].Freeze()
			links[4].Freeze()
			_, err := client.TryLock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			if saw.end.Failed != 2 || saw.end.Elapsed != 50*time.Millisecond {
				t.Errorf("%d nodes failed, after %v; want the 2 that were silent, after 50ms", saw.end.Failed, saw.end.Elapsed)
			}
		})
	}
}
