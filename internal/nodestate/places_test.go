package nodestate

import (
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
