package nodestate

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestWhoIsAboutToLeaveIsServedAfterTheOthers: what is left of each wait is in
// milliseconds; 0 says that its end is not known.
func TestWhoIsAboutToLeaveIsServedAfterTheOthers(t *testing.T) {
	for _, c := range []struct {
		left  []int64
		first int
	}{
		{nil, 0}, {[]int64{21, 500}, 0}, {[]int64{19, 21, 500}, 1}, {[]int64{5, 19, 11}, 1}, {[]int64{-5, 0, 500}, 1},
		{[]int64{-999, -1}, 1}, {[]int64{-1001, 500}, 0}, // the clock of the first one is wrong
	} {
		var q Queue
		now := time.UnixMilli(1e12)
		ws := make([]node.Waiter, len(c.left))
		for i, left := range c.left {
			if ws[i].Ticket = int64(i); left != 0 {
				ws[i].Until = now.UnixMicro() + left*1000
			}
		}
		q.Beside(now, ws, false, false)
		if len(q.Waiters) != len(ws) || len(ws) > 0 && q.Waiters[0].Ticket != int64(c.first) {
			t.Errorf("with %v left: %v, want number %d first", c.left, q.Waiters, c.first)
		}
	}
}

// TestWhoAsksBesideOthers: a and b are of one process, others of their own. The name is free.
func TestWhoAsksBesideOthers(t *testing.T) {
	now := time.UnixMilli(1e12)
	for _, c := range []struct {
		what, first, asks, head string
		kept                    time.Duration
		fresh                   bool
		want                    node.Status
		now                     string // for whom it is kept then
		wakes                   int
	}{
		{"who is first tells nobody", "ac", "a", "", 0, false, node.Granted, "", 0},
		{"who takes it late has it all the same", "ca", "a", "a", -1, false, node.Granted, "", 0},
		{"who asks keeps its place if another of its process is late", "abc", "b", "a", -1, false, node.Granted, "", 0},
		{"who asks beside one that is late", "abc", "c", "a", -1, false, node.Granted, "", 0},
		{"who is second waits until the first is late", "ac", "c", "a", 1, false, node.Reserved, "a", 0},
		{"who finds one late has it kept for the next at once", "acd", "d", "a", -1, true, node.Reserved, "c", 1},
		{"who is second leaves the first a moment", "ac", "c", "", 0, true, node.Reserved, "", 0},
		{"who is second has it kept for the first then", "ac", "c", "", 0, false, node.Reserved, "a", 1},
	} {
		e := Entry{Queue: Queue{Head: c.head, Lapses: now.Add(c.kept)}}
		var ws []node.Waiter
		for i, v := range strings.Split(c.first, "") {
			ws = append(ws, node.Waiter{Value: v, Ticket: int64(i), Process: strings.Trim(v, "ab")})
		}
		e.Queue.Beside(now, ws, false, c.fresh)
		r, wakes := e.apply(now, node.Request{Op: node.OpAcquire, Name: "job", Value: c.asks, TTL: time.Second, Waiting: node.Waiting{Wait: true}}, true)
		if r.Status != c.want || e.Queue.Head != c.now || len(wakes) != c.wakes {
			t.Errorf("%s: %v, kept for %q, told %v; want %v, %q, %d", c.what, r.Status, e.Queue.Head, wakes, c.want, c.now, c.wakes)
		}
	}
}
