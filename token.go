package redlatch

import (
	"cmp"
	"fmt"
	"slices"
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
func (t Token) String() string { return fmt.Sprintf("%0*d", tokenDigits, uint64(t)) }

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

// floorAfter returns the least token that a quorum of nodes could accept as
// far as fences go, given their replies to a refused proposal. Nodes that have
// shown no fence in the way need nothing; nodes on which another has the lock
// are out of the question. Raising the token above the
// highest fence of all would let a single node whose clock ran away drag the
// proposal out of every other node's window.
func floorAfter(results []NodeResult, quorum int) Token {
	needs := make([]Token, 0, len(results))
	for _, r := range results {
		switch {
		case r.Err == errPending:
			needs = append(needs, 0)
		case r.Err != nil:
		case r.Reply.Status == Stale:
			needs = append(needs, r.Reply.Fence+1)
		case r.Reply.Status == Granted, r.Reply.Status == Behind, r.Reply.Status == Ahead:
			needs = append(needs, 0)
		}
	}
	if len(needs) < quorum {
		return 0
	}
	slices.SortFunc(needs, cmp.Compare[Token])
	return needs[quorum-1]
}
