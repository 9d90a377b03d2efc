package admin_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

const quarantine = 32 * time.Second // the default

func TestInitThatWaitsReturnsWhenAllNodesAreTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWorld(t).client("1 2 3")
		start := time.Now()
		calls, last := 0, time.Hour
		states, err := admin.New(c).Init(t.Context(), &admin.InitOptions{Wait: true, Progress: func(states []admin.NodeState) {
			calls++
			for _, s := range states {
				if s.Left > last {
					t.Errorf("after %v it was said that %v are left", last, s.Left)
				}
			}
			last = states[0].Left
		}})
		must(t, err)
		for _, s := range states {
			if !s.Trusted {
				t.Errorf("%s: %+v", s.Node, s)
			}
		}
		if took := time.Since(start); took < quarantine || took > quarantine+time.Second {
			t.Errorf("it took %v, want the quarantine of %v", took, quarantine)
		}
		if calls < 5 || calls > 60 {
			t.Errorf("the progress was reported %d times", calls)
		}
		// They are trusted, so the next call does not wait.
		start = time.Now()
		if _, err := admin.New(c).Init(t.Context(), &admin.InitOptions{Wait: true}); err != nil || time.Since(start) > time.Second {
			t.Errorf("on trusted nodes it took %v: %v", time.Since(start), err)
		}
	})
}

// TestReadyWaitsUntilEveryExtendedLockIsBack: after the quarantine a whole MaxTTL, in
// which each lock is extended three times at least.
func TestReadyWaitsUntilEveryExtendedLockIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const settling = 30 * time.Second // the default MaxTTL
		operator := admin.New(newWorld(t).client("1 2 3"))
		waits := func(r admin.Readiness) bool { return !r.Ready }
		start := time.Now()
		for slices.ContainsFunc(operator.Ready(t.Context()), waits) {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(start); took < quarantine+settling || took > quarantine+settling+time.Second {
			t.Errorf("new nodes are ready after %v, want %v", took, quarantine+settling)
		}
	})
}

func TestInitThatWaitsMarksAgainWhatIsLostMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start := time.Now()
		time.AfterFunc(20*time.Second, w.all[1].Empty)
		time.AfterFunc(22*time.Second, func() { w.down(true, "3") })
		time.AfterFunc(26*time.Second, func() { w.down(false, "3") })
		must(t, runInit(t, w.client("1 2 3"), &admin.InitOptions{Wait: true}))
		if took := time.Since(start); took < 20*time.Second+quarantine {
			t.Errorf("a node lost its data after 20s, and after %v it was all over", took)
		}
	})
}

func TestInitThatWaitsEndsWithItsContextAndSaysHowItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWorld(t).client("1 2 3")
		states, err := admin.New(c).Init(locktest.Within(t, 10*time.Second), &admin.InitOptions{Wait: true})
		locktest.WantErr(t, err, context.DeadlineExceeded)
		for _, s := range states {
			if s.Err != nil || s.Left == 0 {
				t.Errorf("%s: %+v", s.Node, s)
			}
		}
	})
}

func TestInitDoesNotWaitWhereANodeIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.down(true, "1")
		start := time.Now()
		locktest.WantErr(t, runInit(t, w.client("1 2 3"), &admin.InitOptions{Wait: true}), redlatch.ErrNoQuorum)
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v to say that a node does not answer", took)
		}
		w.unmarked("2 3") // the missing one may contradict
	})
}
