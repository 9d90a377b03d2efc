package nodetest

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/stall"
	"github.com/redlatch/redlatch/node"
)

// A Harness says how to reach the nodes that are tested.
type Harness struct {
	// Open returns two nodes that reach one and the same store, as the nodes
	// of two processes would. It is called once for every claim, and may give
	// a new store each time or always the same: no two claims use the same
	// name. Run closes the nodes. Required.
	Open func(t testing.TB) (a, b node.Node)

	// Queues says that the node keeps a queue of waiters. Defaults to false:
	// the node must then leave Wait and Ticket alone.
	Queues bool

	// Lists says that the node is a node.Lister. Defaults to false.
	Lists bool

	// Wakes says that the node tells those who wait when it is their turn, and
	// can leave a name to who is before its holder in line. Defaults to false.
	Wakes bool

	// KeepsFences says that a token at or below a fence stays refused when
	// the fence's retention is over. Defaults to false: it must then be
	// granted.
	KeepsFences bool

	// Unit is the shortest time to live that is used; the longest is a
	// hundred times as long. Defaults to 100 milliseconds.
	Unit time.Duration

	// Tolerance is how late the store may be in seeing that a time is over.
	// Defaults to a fifth of Unit.
	Tolerance time.Duration

	// Advance lets the store's time pass, for a store whose clock the test
	// holds. Defaults to nil: the suite waits, runs its claims in parallel,
	// and checks one that failed again, up to three times in all, if the
	// machine stood still meanwhile. If its steps took longer than a lease
	// that it relies on, the check shows nothing and is not counted, up to
	// thirty times.
	Advance func(d time.Duration)
}

// defaultUnit is the Unit of a harness that sets none.
const defaultUnit = 100 * time.Millisecond

// Run checks every claim that the harness lets a node make.
func Run(t *testing.T, h Harness) {
	if h.Open == nil {
		t.Fatal("nodetest: Harness.Open is nil: it must open the nodes to test")
	}
	for _, c := range claims(h) {
		t.Run(c.name, func(t *testing.T) {
			check := func(t testing.TB) {
				a, b := h.Open(t)
				p := newProbe(t, h, c, a, b)
				if h.Advance == nil {
					p.late = newLateness(h, time.Now, func(format string, args ...any) {
						t.Helper()
						stall.TooLate(t, format, args...)
					})
				}
				c.check(p)
			}
			if h.Advance != nil {
				check(t)
				return
			}
			t.Parallel()
			// What is over by the store's time, and what is not, shows only on a
			// machine that did not stand still.
			stall.Retry(t, cmp.Or(h.Unit, defaultUnit)/5, check)
		})
	}
}

// reporter is what a claim asks of a *testing.T. It is no more than that, so
// that the suite's own test can see a claim fail.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// A claim is one sentence about nodes, and the check that it holds.
type claim struct {
	name  string
	check func(p *probe)
}

// claims returns all that a node of the harness's kind must live up to.
func claims(h Harness) []claim {
	all := slices.Concat(holdClaims(), nameClaims(), callClaims(), tokenClaims(), fenceClaims(h), holderClaims(), repairClaims(), breakClaims(h), listClaims(h))
	if !h.Queues {
		return append(all, noQueueClaims()...)
	}
	all = append(all, queueClaims()...)
	if h.Wakes {
		all = slices.Concat(all, wakeClaims(), offerClaims())
	}
	return all
}

func newProbe(t reporter, h Harness, c claim, a, b node.Node) *probe {
	h.Unit = cmp.Or(h.Unit, defaultUnit)
	h.Tolerance = cmp.Or(h.Tolerance, h.Unit/5)
	p := &probe{reporter: t, h: h, a: a, b: b, name: uniqueName(strings.ReplaceAll(c.name, " ", "-"))}
	t.Cleanup(func() { p.close(&p.a); p.close(&p.b) })
	return p
}
