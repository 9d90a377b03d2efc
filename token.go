package redlatch

import (
	"strconv"
	"sync/atomic"
	"time"
)

// Token is the fencing number of a lease. Of two leases on one name, the one
// whose attempt began after the other was acquired has the higher token. Hand
// it to whatever the lock protects, and have that refuse a token lower than
// the highest it has seen.
//
// A token is at least 1 and at most MaxToken, so that it is exact in every
// place that keeps numbers as IEEE doubles.
type Token uint64

// MaxToken is the largest token there is: 2^53 - 1.
const MaxToken Token = 1<<53 - 1

// tokenDigits is the length of a token as text. Texts of one length compare
// like the numbers they stand for.
const tokenDigits = 20

// String returns the token as 20 digits, zero-padded: the form in which it is
// stored and compared.
func (t Token) String() string {
	var b [tokenDigits]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + t%10)
		t /= 10
	}
	return string(b[:])
}

// ParseToken reads a token from its decimal form, with or without leading
// zeros.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < 1 || n > uint64(MaxToken) || len(s) > tokenDigits {
		return 0, &ConfigError{Field: "token", Value: s, Bound: "a whole number from 1 to 9007199254740991"}
	}
	return Token(n), nil
}

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
		if near := Token(last); near >= now && near < now+TokenLeap {
			t = near + 1
		}
		if p.last.CompareAndSwap(last, uint64(t)) {
			return min(max(t, floor), MaxToken)
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
	s := span{}
	switch {
	case r.Err == errPending:
		s.least = 1
	case r.Err != nil:
		return span{}, false
	case r.Reply.Status == Granted:
		s.least = r.Reply.Fence // it has our value already
		now = r.Reply.Now
	case r.Reply.Status == Stale, r.Reply.Status == Behind, r.Reply.Status == Ahead:
		now = r.Reply.Now
		s.least = max(r.Reply.Fence+1, Token(max(now.Add(-window).UnixMicro(), 1)))
	default:
		return span{}, false
	}
	s.most = max(r.Reply.Fence+TokenLeap, Token(max(now.Add(window).UnixMicro(), 1)))
	return s, true
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
