//go:build unix

package jobtest

import (
	"fmt"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// stalled is how late a timer is on a machine that is too busy to decide. The
// time between two runs is Step.
const stalled = Step / 4

// OnServers runs a test of replicas on one server and on three.
func OnServers(t *testing.T, test func(t testing.TB, servers int)) {
	t.Parallel()
	servertest.Need(t)
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			stall.Retry(t, stalled, func(t testing.TB) { test(t, n) })
		})
	}
}

// KillLosesNoRun kills the replica that runs the job, in the middle of it. The
// other one must run what was cut off, and all that was due on it meanwhile: no
// two at a time, and none twice.
func KillLosesNoRun(t testing.TB, servers int, flags ...string) {
	t.Helper()
	g := StartGroup(t, servers, append([]string{"-ttl", "3s", "-work", "200ms"}, flags...))
	g.AwaitEnds("", 1)
	cut, survivor := g.KillHolder()
	g.AwaitEnds(survivor, 3)
	events := g.Stop()
	g.MustHold(events, survivor)
	for _, e := range events {
		if e.Kind == End && e.Due.Equal(cut.Due) && e.Replica == survivor {
			return
		}
	}
	t.Errorf("%s did not run what %s had begun at %v:\n%s", survivor, cut.Replica, cut.Due, Text(events))
}

// LateReplicaDoesNotRunAgain has a job that is over before the other replica is
// due to run it, because that one's clock is behind.
func LateReplicaDoesNotRunAgain(t testing.TB, servers int, flags ...string) {
	t.Helper()
	g := StartGroup(t, servers, flags, "-late", "1s")
	g.AwaitTicks(3)
	g.MustHold(g.Stop(), "A", "B")
}

// SabotageIsFoundOut runs replicas without what the other claims test. What
// those look for must be there to be found.
func SabotageIsFoundOut(t *testing.T, flags ...string) {
	t.Parallel()
	servertest.Need(t)
	for sabotage, c := range map[string]struct{ work, late, finds string }{
		NoLock: {"-work=1s", "-late=0s", "overlap"},
		NoOnce: {"-work=0s", "-late=1s", "twice"},
	} {
		t.Run(sabotage, func(t *testing.T) {
			t.Parallel()
			stall.Retry(t, stalled, func(t testing.TB) {
				g := StartGroup(t, 1, append([]string{"-sabotage", sabotage, c.work}, flags...), c.late)
				g.AwaitTicks(3)
				g.MustFail(g.Stop(), c.finds)
			})
		})
	}
}
