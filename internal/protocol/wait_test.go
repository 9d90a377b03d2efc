package protocol

import (
	"testing"
	"time"
)

// TestPollsFollowTheQueuesPace has a waiter be told its place, where nobody is notified.
func TestPollsFollowTheQueuesPace(t *testing.T) {
	const ms = time.Millisecond
	c := Claim{cfg: Config{Nodes: 1}}
	for _, told := range []struct {
		at   time.Duration
		rank uint16
		want time.Duration
	}{
		{0, 40, pollStep}, {5 * ms, 40, 5 * ms}, {55 * ms, 40, 55 * ms}, {400 * ms, 40, 200 * ms}, // more rarely while it stands
		{800 * ms, 20, 380 * ms}, {1000 * ms, 10, 90 * ms}, // 40 ms for each, and then 20: half of those before it
		{1180 * ms, 1, pollLeast}, {2000 * ms, 1, 82 * ms}, {9000 * ms, 1, pollStill}, {9001 * ms, 2000, pollMost},
	} {
		c.nodes[0] = member{got: Replied, rank: told.rank}
		if got := c.delay(passView{now: told.at}); got != told.want {
			t.Errorf("place %d after %v: again in %v, want %v", told.rank, told.at, got, told.want)
		}
	}
}
