package runner

import (
	"context"
	"log/slog"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// answered records the clock of a node that has answered, or that it has none.
func (m *Member) answered(sent, now time.Time, clockless bool) {
	if clockless {
		m.clockless.Store(true)
		return
	}
	m.showed(sent, m.cluster.clock.Now(), now)
}

// showed records the node's clock during a round trip from sent to arrived.
func (m *Member) showed(sent, arrived, now time.Time) {
	if now.IsZero() {
		return
	}
	m.epochAt.Store(now.UnixNano() - int64(m.cluster.clock.Uptime()))
	known := time.Duration(m.offset.Load())
	offset := protocol.Offset(known, now.Sub(arrived), now.Sub(sent))
	if offset != known || !m.offsetKnown.Load() {
		m.offset.Store(int64(offset))
		m.offsetKnown.Store(true)
		m.cluster.checkClocks()
	}
}

// checkClocks logs the nodes whose clock differs from the others'. Tokens are
// proposed by the median, so such a node will soon refuse them as outside its
// window.
func (c *Cluster) checkClocks() {
	var known protocol.Set
	var buf [protocol.MaxNodes]time.Duration
	offsets := buf[:len(c.members)]
	for i, m := range c.members {
		if offsets[i] = time.Duration(m.offset.Load()); m.offsetKnown.Load() {
			known |= protocol.Of(i)
		}
	}
	all, judged := protocol.WrongClocks(offsets, known, c.guard.parameters().Window)
	if !judged {
		return
	}
	for i, m := range c.members {
		if !known.Has(i) {
			continue
		}
		wrong, off := all.Has(i), offsets[i]-c.clockOffset()
		if wrong && !m.wrongClock.Swap(true) {
			c.say(slog.LevelWarn, "redlatch: node's clock differs from the majority", "node", m.name, "ahead", off.Round(time.Millisecond))
			m.changed()
		} else if !wrong && m.wrongClock.Swap(false) {
			c.say(slog.LevelInfo, "redlatch: node's clock is right again", "node", m.name)
			m.changed()
		}
	}
}

// clockKnown reports whether any node has shown its clock, or a quorum has none.
func (c *Cluster) clockKnown() bool {
	shown, clockless := c.clocks()
	return shown || clockless >= protocol.Quorum(len(c.members))
}

// noClocks reports whether a quorum of nodes has no clock, and none has shown one.
func (c *Cluster) noClocks() bool {
	shown, clockless := c.clocks()
	return !shown && clockless >= protocol.Quorum(len(c.members))
}

// clocks reports whether any node has shown its clock, and if not how many have none.
func (c *Cluster) clocks() (shown bool, clockless int) {
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			return true, 0
		}
		if m.clockless.Load() {
			clockless++
		}
	}
	return false, clockless
}

// clockOffset returns how far the nodes' clocks are ahead of ours. It is the
// median of those that have one, so that a minority of wrong clocks has no effect.
func (c *Cluster) clockOffset() time.Duration {
	if len(c.members) == 1 {
		return time.Duration(c.members[0].offset.Load())
	}
	var buf [protocol.MaxNodes]int64
	seen := buf[:0]
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			seen = append(seen, m.offset.Load())
		}
	}
	return time.Duration(protocol.Median(seen))
}

// nodesClock returns what the clocks of the nodes show that have one; ours if none is
// known. If our wall clock is set, it does not follow.
func (c *Cluster) nodesClock() time.Time {
	var buf [protocol.MaxNodes]int64
	seen := buf[:0]
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			seen = append(seen, m.epochAt.Load())
		}
	}
	if len(seen) == 0 {
		return c.clock.Now()
	}
	return time.Unix(0, protocol.Median(seen)+int64(c.clock.Uptime()))
}

// NodeTime returns the time on the nodes' clocks. It asks the nodes if a quorum of
// them has not shown its clock before, by a request about the key, which changes
// nothing. It returns false if too few answer.
func (c *Cluster) NodeTime(ctx context.Context, key string) (time.Time, bool) {
	if !c.clocksKnown() {
		c.Inspect(ctx, key, c.clocksKnown)
	}
	return c.clock.Now().Add(c.clockOffset()), c.clocksKnown()
}

// clocksKnown reports whether a quorum of nodes has shown its clock, or that it has
// none.
func (c *Cluster) clocksKnown() bool {
	n := 0
	for _, m := range c.members {
		if m.offsetKnown.Load() || m.clockless.Load() {
			n++
		}
	}
	return n >= protocol.Quorum(len(c.members)) && c.clockKnown()
}
