package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// maxProposals limits how often a round is repeated with a higher token. Once
// is normal when a clock is off. Each further time, another client must have
// come in between.
const maxProposals = 8

// propose chooses the token of the next request.
func (c *Claim) propose(v View) {
	floor := max(c.floor, c.above+1)
	// A quorum accepted the last holder's token, so it will accept one above
	// it; unless it is from a node whose clock ran away.
	if c.fence < c.plausible(v) {
		floor = max(floor, c.fence+1)
	}
	if v.NoClocks() {
		// Each node accepts what is above its fence. It says so to the first in its
		// queue alone, and without clocks that may be another one on each node: then
		// no round shows a quorum that wants a higher token.
		for i := range c.cfg.Nodes {
			if m := &c.nodes[i]; m.got == Replied {
				floor = max(floor, m.fence+1)
			}
		}
	}
	c.token = v.Token(floor)
}

// plausible is the highest token that nodes can be expected to accept.
func (c *Claim) plausible(v View) node.Token {
	at := clockOf(v)
	if at.none {
		return node.MaxToken
	}
	return Plausible(at.now, c.cfg.Window)
}

// clock is what the nodes' clocks show. If no node has one, it is ours, and no token
// is ahead of it: it would not stop a client whose clock is ahead, and lock out all
// others for as long as that one's fence is.
type clock struct {
	now  time.Time
	none bool
}

func clockOf(v View) clock { return clock{v.Time().Add(v.Offset()), v.NoClocks()} }

// Plausible is the highest token that nodes with that window and time can be
// expected to accept, if clocks are off by half of the window.
func Plausible(now time.Time, window time.Duration) node.Token {
	return node.Token(max(now.Add(window/2).UnixMicro(), 0))
}

// ClockFor returns the time that a request tells a node without a clock. at is what the
// other nodes' clocks show, or ours; known and none say which of them have one, as
// View.ClockKnown and View.NoClocks do.
func ClockFor(req *node.Request, at time.Time, known, none bool) time.Time {
	switch token := time.UnixMicro(int64(req.Token)); {
	case !known:
		// Every token is ahead of this. Our clock may be hours ahead, and so would the
		// fence be for hours, above all tokens that the other nodes accept.
		return time.UnixMicro(0).UTC()
	case none && req.Op != node.OpRepair && token.After(at):
		// It is not ahead. The time limit of a repair is by our clock.
		return token
	}
	return at
}

// Lateness is how long from now a request may still leave something on a node
// that does not answer within limit. The node may execute it while the token is in its
// window, by a clock that may be off by half the window, and what it sets then
// lives for the TTL.
func Lateness(req *node.Request, limit time.Duration) time.Duration {
	return req.TTL + limit + req.Window + req.Window/2
}

// FenceRetention returns how long a node keeps the fence of a lock: at least as long as
// the caller wants. A fence must outlive its lock, or the lock would be without a token.
// And it must outlive every lower token that is in the window of a node yet.
func FenceRetention(least, ttl, window time.Duration) time.Duration {
	return max(least, 4*window, ttl+window)
}

// NextToken returns the token that a client proposes next: the nodes' time in
// microseconds, or one above its last proposal; at least floor.
func NextToken(last, floor node.Token, now time.Time) node.Token {
	t := node.Token(max(now.UnixMicro(), 1))
	// The last proposal counts only if it is near the clock: a client whose
	// clock was corrected by an hour must not continue from the wrong time.
	if last >= t && last < t+node.TokenLeap {
		t = last + 1
	}
	return min(max(t, floor), node.MaxToken)
}

// proposals has the tokens that a claim proposed: the lowest and the highest,
// however many there were. Both are 0 if there are none.
type proposals struct{ least, most node.Token }

func (p *proposals) add(t node.Token) {
	if p.least == 0 || t < p.least {
		p.least = t
	}
	p.most = max(p.most, t)
}

// upTo returns a token that is no lower than any proposal up to most, and no
// higher than most; 0 if every proposal is above most. If some are above it,
// because our clock was corrected in between, it returns most itself.
func (p *proposals) upTo(most node.Token) node.Token {
	if p.least > most {
		return 0
	}
	return min(p.most, most)
}

// span is the range of tokens that a node would accept.
type span struct{ least, most node.Token }

// accepts returns the lowest and the highest token that node.Judge grants.
func accepts(fence node.Token, now time.Time, window time.Duration) (least, most node.Token) {
	clock, w := now.UnixMicro(), window.Microseconds()
	return max(fence+1, node.Token(max(clock-w, 1))), node.Token(max(clock+w, int64(fence)+node.TokenLeap))
}

// spanOf returns the span of a node that granted, or that refused the token;
// false for a node that would accept no token at all. A node that has not
// answered is assumed to have no fence and the correct time.
func (c *Claim) spanOf(i int, at clock) (span, bool) {
	m, now := &c.nodes[i], at.now
	switch {
	case m.got == Pending:
		_, most := accepts(0, now, c.cfg.Window)
		return span{1, most}, true
	case m.got != Replied:
		return span{}, false
	}
	if !c.clockless.Has(i) { // otherwise it goes by the clocks of the others
		now = time.UnixMicro(m.now)
	}
	least, most := accepts(m.fence, now, c.cfg.Window)
	if at.none {
		most = node.MaxToken
	}
	switch {
	case m.status == node.Granted:
		return span{m.fence, most}, true // it has our value already
	case c.refusedByToken(m):
		return span{least, most}, true
	}
	return span{}, false
}

// refusedByToken reports whether a node that answered refused the token, or did
// not queue us because it is too old.
func (c *Claim) refusedByToken(m *member) bool {
	switch m.status {
	case node.Stale, node.Behind, node.Ahead:
		return true
	case node.Held, node.Reserved, node.Foreign:
		return c.wait.queued && m.rank == 0 && int64(c.token) < m.now-c.cfg.Window.Microseconds()
	}
	return false
}

// floorAfter returns the lowest token that a quorum of nodes would accept,
// given their replies to a refused proposal; false if there is none. It does
// not simply take one above the highest fence: a single node whose clock ran
// away would move the proposal out of every other node's window.
func (c *Claim) floorAfter(at clock) (node.Token, bool) {
	var spans [MaxNodes]span
	n := 0
	for i := range c.cfg.Nodes {
		if s, ok := c.spanOf(i, at); ok {
			spans[n] = s
			n++
		}
	}
	best, found := node.Token(0), false
	for _, s := range spans[:n] {
		accept := 0
		for _, other := range spans[:n] {
			if other.least <= s.least && s.least <= other.most {
				accept++
			}
		}
		if accept >= Quorum(c.cfg.Nodes) && (!found || s.least < best) {
			best, found = s.least, true
		}
	}
	return best, found
}

// wantsHigherToken reports whether a quorum might grant with another token, or
// queue us.
func (c *Claim) wantsHigherToken() bool {
	firm, byToken := 0, 0
	for i := range c.cfg.Nodes {
		switch m := &c.nodes[i]; {
		case m.got == Pending:
		case m.got != Replied:
			firm++
		case m.status == node.Granted:
		case c.refusedByToken(m):
			byToken++
		default:
			firm++
		}
	}
	return byToken > 0 && c.cfg.Nodes-firm >= Quorum(c.cfg.Nodes)
}
