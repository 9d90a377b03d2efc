package casnode

import (
	"context"
	crand "crypto/rand"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file has timers: a caller that is refused and may leave before the time is over
// leaves one, so that somebody counts. The row refers to it beside the stamp of the
// time that it was left for. A rule that sets the time anew drops the stamp, and the
// reference with it.
//
//	StartTimer(id)          it runs for what is left, or longer
//	Swap(row that says id)  only if the row is as it was read: the same stamp
//	...                     a later Read finds no such timer: the time is over
//	Swap(row without id)
//	DropTimers(id)          never before that Swap
//
// A caller that stops between the first two steps does no harm. If the timer has run
// out when the row comes to refer to it, the stamp is still the same, and its time is
// over.

const (
	// mostRecords is how many completed occurrences of a name are remembered, and
	// mostEnded how many values that were released, on a store without a clock.
	mostRecords = 1000
	mostEnded   = 64
	// recordsLeft is for how many records a timer is left.
	recordsLeft = 64
)

// leaveTimers makes the entry refer to timers, if some are needed. It returns how long
// they must run, by their ids.
func leaveTimers(e *nodestate.Entry, req node.Request, reply node.Reply, waited bool, now time.Time) (timers map[string]time.Duration) {
	leave := func(d time.Duration, id string) {
		if d <= 0 {
			return
		}
		if timers == nil {
			timers = map[string]time.Duration{}
		}
		timers[id] = d
	}
	id, other := crand.Text()[:12], crand.Text()[:12]
	leaves := req.Op == node.OpAcquire && !req.Wait || req.Op == node.OpRelease && waited
	switch {
	case req.Op == node.OpComplete:
		leave(e.LeaveForRecords(id, recordsLeft, now), id)
	case leaves && len(e.Holders) > 0 && (reply.Status == node.Held || waited):
		leave(e.LeaveForHolders(id, now), id)
		// The waiters may have crashed, too. Their places are over before the lock is.
		leave(e.LeaveForHead(other, now), other)
	case leaves && reply.Status == node.Reserved:
		leave(e.LeaveForHead(id, now), id)
	}
	return timers
}

// startTimers reports whether all timers run.
func (n *Node) startTimers(ctx context.Context, name string, timers map[string]time.Duration) bool {
	for id, d := range timers {
		if !n.startTimer(ctx, name, id, d) {
			return false
		}
	}
	return true
}

// startTimer reports whether a timer runs. One that may run and may not is left alone:
// nothing refers to it, and it ends.
func (n *Node) startTimer(ctx context.Context, name, id string, d time.Duration) bool {
	done, err := n.timers.StartTimer(ctx, name, id, d)
	if done && err == nil {
		n.started.Add(1)
	}
	return done && err == nil
}

// Clockless reports whether the store certainly has no clock. A client that knows it lets
// its first request wait in a place, and leaves no timer.
func (n *Node) Clockless() bool { return n.timers != nil }

// Timers returns how many timers this node has left in the store.
func (n *Node) Timers() int64 { return n.started.Load() }

// dropTimers removes the timers that ran when the row was read, and to which the row
// that was written does not refer. It must have been written. A timer that another
// caller has started, and to which the row does not refer yet, may be among them: that
// caller has read the row before this write, so that its Swap fails.
func (n *Node) dropTimers(ctx context.Context, seen Snapshot, row Row) {
	ran := seen.Row.Timers
	if n.timers == nil || len(ran) == 0 {
		return
	}
	refers := map[string]bool{}
	how := &nodestate.Sight{Now: seen.Now, Left: func(s nodestate.Stamp, left time.Duration) time.Duration {
		refers[s.Timer] = true
		return left
	}}
	var e nodestate.Entry
	var m nodestate.Marker
	err := error(nil)
	if row.Name == MarkerName {
		err = m.DecodeSeen(row.State, how)
	} else {
		err = e.DecodeSeen(row.State, how)
	}
	gone := slices.DeleteFunc(slices.Clone(ran), func(id string) bool { return refers[id] })
	if err == nil && len(gone) > 0 {
		_ = n.timers.DropTimers(ctx, row.Name, gone) // else they end by themselves
	}
}

// noteTrusted writes into the marker's row what this process has observed of the
// quarantine. If the request was refused because of it, that is a timer, unless there is
// one. If the quarantine is over and the row does not say so, it is that: another process
// would begin to count. If the write fails, another request will do it.
func (n *Node) noteTrusted(ctx context.Context, s Snapshot, op node.Op, status node.Status) {
	if s.by == nil || op != node.OpAcquire && op != node.OpMark {
		return
	}
	m, err := s.marker()
	if err != nil {
		return
	}
	switch {
	case status == node.Quarantined && n.timers != nil && op == node.OpAcquire:
		id := crand.Text()[:12]
		d := m.LeaveForTrust(id, s.Now)
		if d <= 0 || !n.startTimer(ctx, MarkerName, id, d) {
			return
		}
	case status == node.Granted && s.overdue:
	default:
		return
	}
	s.Row = s.Marker
	row := Row{Name: MarkerName}
	row.State, _ = s.encodeMarker(&m)
	_, _, _ = n.swap(ctx, s, node.Request{Op: node.OpMark}, decision{row: &row, fresh: map[uint64]time.Duration{}}, false)
}
