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

	// Queues says that the node keeps a queue of waiters. Defaults to false:
	// the node must then ignore Wait and Ticket.
	Queues bool

	// Shares says that the node knows the modes Shared and Slotted. Defaults to
	// false: it must then refuse them.
	Shares bool

	// Marks says that the node records what is completed: OpComplete, OpCheck,
	// OpRecords and OpAdopt. Defaults to false: it must then refuse them.
	Marks bool

	// Lists says that the node is a node.Lister. Defaults to false.
	Lists bool

	// Wakes says that the node notifies waiters, and that it can yield a name
	// to a waiter before its holder in the queue. Defaults to false.
	Wakes bool

	// Guards says that the node is a node.Guarded, whose marker nobody else uses
	// while the suite runs. Defaults to false.
	Guards bool

	// KeepsFences says that a token at or below a fence is still refused when
	// the fence's retention is over. Defaults to false: it must then be
	// granted.
	KeepsFences bool

	// Unit is the shortest time to live in the suite; the longest is a hundred
	// times as long. Defaults to 100 milliseconds.
	Unit time.Duration

	// Tolerance is how late the store may notice that a time is over. Defaults
	// to a fifth of Unit.
	Tolerance time.Duration

	// Advance lets the store's time pass, for a store whose clock the test
	// controls. Defaults to nil: the suite then waits, and runs its claims in
	// parallel. It checks a claim that failed again, up to three times in all,
	// if the machine was stalled meanwhile. If the steps of a claim took longer
	// than a lease that it relies on, the check shows nothing and is not
	// counted, up to thirty times.
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
			// A claim about the store's time can only be checked on a machine
			// that was not stalled.
			stall.Retry(t, cmp.Or(h.Unit, defaultUnit)/5, check)
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
	all := slices.Concat(holdClaims, nameClaims, callClaims, tokenClaims, fenceClaims, holderClaims, repairClaims, breakClaims, keepClaims)
	for _, some := range []struct {
		apply  bool
		claims []claim
	}{
		{h.KeepsFences, keptFenceClaims},
		{!h.KeepsFences, forgottenFenceClaims},
		{h.Guards, guardClaims},
		{h.Lists, listClaims},
		{h.Lists && h.Queues, listQueueClaims},
		{h.Marks, recordClaims},
		{h.Marks && h.Lists, recordListClaims},
		{!h.Marks, noRecordClaims},
		{h.Shares, shareClaims},
		{h.Shares, slotClaims},
		{h.Shares && h.Lists, shareListClaims},
		{h.Shares && h.Queues, shareQueueClaims},
		{h.Shares && h.Queues && h.Wakes, shareWakeClaims},
		{!h.Shares, noShareClaims},
		{h.Queues, breakQueueClaims},
		{h.Queues, queueClaims},
		{!h.Queues, noQueueClaims},
		{h.Queues && h.Wakes, wakeClaims},
		{h.Queues && h.Wakes, offerClaims},
	} {
		if some.apply {
			all = append(all, some.claims...)
		}
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
