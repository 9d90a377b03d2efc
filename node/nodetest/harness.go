package nodetest

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
)

// A Harness says how to reach the nodes under test.
type Harness struct {
	// Open returns two nodes of the same store, as two processes would have. It
	// is called once for every claim. It may return a new store each time, or
	// always the same: no two claims use the same name. Run closes the nodes.
	// Required.
	Open func(t testing.TB) (a, b node.Node)

	// Wakes says that the node notifies waiters, and that it can yield a name
	// to a waiter before its holder in the queue. Defaults to false.
	Wakes bool

	// Places says that the place of a waiter belongs to the node that it asks, and lives
	// with that. All requests of one waiter then go to one node. Ranks behind the first
	// three may be too high. Nobody has to renew a place: only a turn that is missed
	// ends those of a node. Defaults to false. Arrival says that they are in the order
	// in which they came, whatever their tickets.
	Places, Arrival bool

	// Guards says that the node is a node.Guarded, whose marker nobody else uses
	// while the suite runs. Defaults to false.
	Guards bool

	// KeepsFences says that a token at or below a fence is still refused when
	// the fence's retention is over. Defaults to false: it must then be
	// granted.
	KeepsFences bool

	// Observes says that the store has no clock: a node counts a time from when it
	// first saw it. Before time passes, both nodes then look at every name that the
	// claim has used. Defaults to false.
	Observes bool

	// Unit is the shortest time to live in the suite; the longest is a hundred
	// times as long. Defaults to 100 milliseconds.
	Unit time.Duration

	// Advance lets the store's time pass, for a store whose clock the test
	// controls. Defaults to nil: the suite then waits, and runs its claims in
	// parallel. If the steps of a claim took longer than a lease that it relies
	// on, the check shows nothing, and is made again, up to thirty times. A claim
	// that fails otherwise has failed.
	Advance func(d time.Duration)
}

// defaultUnit is the Unit of a harness that sets none.
const defaultUnit = 100 * time.Millisecond

// Run checks every claim that applies to the harness.
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
					p.late = newLateness(time.Now, func(format string, args ...any) {
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
			stall.Retry(t, check)
		})
	}
}

// reporter is the part of a *testing.T that a claim uses. It is small, so that
// the suite's own test can see a claim fail.
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

// claims returns all claims that a node of the harness's kind must meet.
func claims(h Harness) []claim {
	all := slices.Concat(holdClaims, nameClaims, callClaims, tokenClaims, fenceClaims, holderClaims, reserveClaims, repairClaims, breakClaims,
		keepClaims, recordClaims, listClaims, shareClaims, slotClaims, shareQueueClaims, queueClaims, reserveQueueClaims)
	if !h.Arrival {
		all = slices.Concat(all, ticketClaims, shareTicketClaims)
	}
	if h.Places {
		all = append(all, placeClaims...)
	} else {
		all = append(all, listQueueClaims...)
	}
	if h.KeepsFences {
		all = append(all, keptFenceClaims...)
	} else {
		all = append(all, forgottenFenceClaims...)
	}
	if h.Guards {
		all = append(all, guardClaims...)
	}
	if h.Wakes {
		all = slices.Concat(all, wakeClaims, yieldClaims, shareWakeClaims)
		if h.Places {
			all = append(all, placeWakeClaims...)
		} else {
			all = slices.Concat(all, listWakeClaims, listShareWakeClaims)
		}
	}
	return all
}

func newProbe(t reporter, h Harness, c claim, a, b node.Node) *probe {
	h.Unit = cmp.Or(h.Unit, defaultUnit)
	p := &probe{reporter: t, h: h, a: a, b: b, used: map[string]bool{}, homes: map[holder]node.Node{}, tolerance: h.Unit / 5, name: uniqueName(strings.ReplaceAll(c.name, " ", "-"))}
	t.Cleanup(func() { p.close(&p.a); p.close(&p.b) })
	return p
}
