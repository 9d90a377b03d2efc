package runner_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// slowly makes every request and every reply on a link take half of d.
func slowly(links locktest.Links, d time.Duration) {
	links.Set(func(l *locktest.Link) { l.Out, l.Back = d/2, d/2 })
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
				links, client := locktest.New(t, n, redlatch.Options{})
				slowly(links, c.late)
				l, err := client.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: c.ttl})
				if err != nil {
					t.Fatalf("TTL %v, answers after %v: %v", c.ttl, c.late, err)
				}
				if err := errors.Join(l.Extend(t.Context()), l.Release(t.Context())); err != nil {
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
			links, client := locktest.New(t, 1, redlatch.Options{NodeTimeout: c.set})
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
// decision. The client waits for the other nodes once, for a moment only, not for the
// whole limit. If the limit ends in that moment, the silent nodes have failed.
func TestMinorityThatIsFrozenHoldsUpNoDecision(t *testing.T) {
	for _, c := range []struct {
		answers, limit, want time.Duration
		failed               int
	}{
		{0, 0, 250 * time.Millisecond, 0},
		{100 * time.Millisecond, 0, 400 * time.Millisecond, 0}, // slow nodes: four times what the others took
		{0, 50 * time.Millisecond, 50 * time.Millisecond, 2},
		{0, 100 * time.Millisecond, 100 * time.Millisecond, 2},
	} {
		for range 10 { // two timers for the same moment would make it random
			synctest.Test(t, func(t *testing.T) {
				var failed []int
				links, client := locktest.New(t, 5, redlatch.Options{NodeTimeout: c.limit, Observer: locktest.Rounds(func(e observe.RoundEnd) {
					failed = append(failed, e.Failed)
				})})
				// Two nodes refuse and one grants: only the two silent ones could
				// decide it.
				links[:2].Take(t, "job", "another", time.Hour)
				slowly(links, c.answers)
				links[3:].Freeze()
				for i := range 30 {
					start, want := time.Now(), c.answers
					if i == 0 {
						want = c.want
					}
					_, err := client.TryLock(t.Context(), "job", nil)
					locktest.WantErr(t, err, redlatch.ErrHeld)
					if took := time.Since(start); took != want || i == 0 && failed[0] != c.failed {
						t.Errorf("%+v: round %d took %v, want %v; %d nodes failed in the first", c, i+1, took, want, failed[0])
					}
					time.Sleep(10 * c.answers) // what was granted is undone
					synctest.Wait()
				}
				if asked := links[4].Count(node.OpAcquire); c.answers == 0 && asked > 1+16 {
					t.Errorf("a silent node was asked %d times at once", asked)
				}
			})
		}
	}
}
