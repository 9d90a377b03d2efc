package nodetest

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// slowly checks every claim on a node in memory, on a machine on which each
// request takes this long. It returns the claims that failed, and those that
// were too late to show anything.
func slowly(t *testing.T, each time.Duration, m mutant, only []string) (failed, late map[string]string) {
	failed, late = map[string]string{}, map[string]string{}
	now := time.Now()
	clock := func() time.Time { return now }
	h := Harness{Wakes: true, Advance: func(d time.Duration) { now = now.Add(d) }}
	for _, c := range claims(h) {
		if only != nil && !slices.Contains(only, c.name) {
			continue
		}
		healthy := memory.New(&memory.Options{Clock: clock})
		n := &broken{Node: healthy, list: m.list}
		n.do = func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
			now = now.Add(each)
			if m.do == nil {
				return n.Node.Do(ctx, req)
			}
			return m.do(n, ctx, req)
		}
		why := refute(h, c, n, n, func(r *recorder) *lateness {
			return newLateness(clock, func(format string, args ...any) {
				r.Errorf(format, args...)
				late[c.name] = r.why
				runtime.Goexit()
			})
		})
		if late[c.name] == "" && why != "" {
			failed[c.name] = why
		}
	}
	return failed, late
}

func TestSlowMachineIsNotTakenForABrokenNode(t *testing.T) {
	for _, each := range []time.Duration{20 * time.Millisecond, 60 * time.Millisecond, 110 * time.Millisecond, 250 * time.Millisecond, 450 * time.Millisecond} {
		failed, late := slowly(t, each, mutant{}, nil)
		for claim, why := range failed {
			t.Errorf("%v a request: %q failed: %s", each, claim, why)
		}
		if 3*each > node.WaiterLease && !strings.Contains(late["a waiter that does not renew is dropped"], "were planned") {
			t.Errorf("%v a request: it is not said that renewing came too late: %q", each, late)
		}
	}
}

func TestBrokenNodeIsNotTakenForASlowMachine(t *testing.T) {
	for _, m := range wrongStores() {
		if m.kind != "" {
			continue
		}
		failed, late := slowly(t, time.Millisecond, m, m.claims)
		for _, claim := range m.claims {
			if failed[claim] == "" {
				t.Errorf("%s: %q was not refuted: %q", m.name, claim, late[claim])
			}
		}
	}
}

// TestLockThatIsKeptIsReliedOn has the second of two releases with Keep come late,
// and a node be asked after its quarantine.
func TestLockThatIsKeptIsReliedOn(t *testing.T) {
	now := time.Now()
	for name, steps := range map[string][]func(l *lateness){
		"a lock that is kept": {
			func(l *lateness) {
				l.answered(node.Request{Op: node.OpAcquire, TTL: 100 * time.Millisecond}, node.Reply{Status: node.Granted})
			},
			func(l *lateness) {
				l.answered(node.Request{Op: node.OpRelease, Parting: node.Parting{Keep: time.Second}}, node.Reply{Status: node.Granted})
			},
		},
		"a quarantine": {func(l *lateness) {
			l.answered(node.Request{Op: node.OpMark}, node.Reply{Status: node.Quarantined, Left: 100 * time.Millisecond})
		}},
	} {
		l := newLateness(func() time.Time { return now }, nil)
		for _, step := range steps {
			l.asks()
			step(l)
		}
		now = now.Add(150 * time.Millisecond)
		if l.check(); l.why == "" {
			t.Errorf("%s: 150 ms later it is not said that this was too late", name)
		}
	}
}
