package redlatch

import (
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
)

// proposer chooses the tokens that a client proposes: its own clock in
// microseconds, put right by what the nodes' clocks say, and not twice the same
// while that runs on.
type proposer struct {
	clock Clock
	last  atomic.Uint64
}

// propose returns a token that is at least floor. offset is how far the
// nodes' clocks are ahead of ours.
func (p *proposer) propose(offset time.Duration, floor Token) Token {
	now := Token(max(p.clock.Now().Add(offset).UnixMicro(), 1))
	for {
		last := p.last.Load()
		// The last proposal binds only while it is about as late as the
		// clock: a clock that was put right by an hour must not go on
		// proposing from where it wrongly was.
		t := now
		if near := Token(last); near >= now && near < now+node.TokenLeap {
			t = near + 1
		}
		if p.last.CompareAndSwap(last, uint64(t)) {
			return min(max(t, floor), node.MaxToken)
		}
	}
}

// plausible is the highest token that nodes with that window can be expected to
// accept, as far as we know their clocks.
func (c *Client) plausible(window time.Duration) Token {
	return Token(max(c.clock.Now().Add(c.clockOffset()+window/2).UnixMicro(), 0))
}

// span is which tokens a node would accept.
type span struct{ least, most Token }

// spanOf returns the span of a node that refused a proposal for its token, or
// that granted it; false for a node that would grant no token at all. A node
// that has not answered yet is taken to have no fence and the right time.
func spanOf(r NodeResult, now time.Time, window time.Duration) (span, bool) {
	switch {
	case r.Err == errPending:
		_, most := node.Accepts(0, now, window)
		return span{1, most}, true
	case r.Err != nil:
		return span{}, false
	}
	least, most := node.Accepts(r.Reply.Fence, r.Reply.Now, window)
	switch r.Reply.Status {
	case node.Granted:
		return span{r.Reply.Fence, most}, true // it has our value already
	case node.Stale, node.Behind, node.Ahead:
		return span{least, most}, true
	}
	return span{}, false
}

// floorAfter returns the least token that a quorum of nodes would accept, given
// their replies to a refused proposal and the time; false if there is none. It is not simply
// above the highest fence: a single node whose clock ran away would drag the
// proposal out of every other node's window.
func floorAfter(results []NodeResult, quorum int, now time.Time, window time.Duration) (Token, bool) {
	var spans []span
	for _, r := range results {
		if s, ok := spanOf(r, now, window); ok {
			spans = append(spans, s)
		}
	}
	best, found := Token(0), false
	for _, s := range spans {
		accept := 0
		for _, other := range spans {
			if other.least <= s.least && s.least <= other.most {
				accept++
			}
		}
		if accept >= quorum && (!found || s.least < best) {
			best, found = s.least, true
		}
	}
	return best, found
}
