package node

import (
	"strconv"
	"time"
)

// Token is the fencing number of a lease. Of two leases on one name, the one
// whose attempt began after the other was acquired has the higher token. Pass
// it to the resource that the lock protects, and let the resource refuse a
// token lower than the highest it has seen.
//
// A token is at least 1 and at most MaxToken, so that it is exact where numbers
// are stored as IEEE doubles.
type Token uint64

// MaxToken is the highest token: 2^53 - 1.
const MaxToken Token = 1<<53 - 1

// TokenLeap is how far above a node's fence a token may be, whatever the node's
// clock shows: without it, a clock that was set back would lock everyone out.
const TokenLeap = 1000

// tokenDigits is the length of a token as text. Texts of one length compare
// like their numbers.
const tokenDigits = 20

// String returns the token as 20 digits, zero-padded. It is stored and compared
// in this form.
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
		return 0, &ConfigError{Field: "token", Value: s, Bound: "a whole number between 1 and 9007199254740991"}
	}
	return Token(n), nil
}

// Judge is the rule by which a node accepts a token that is proposed for a free
// name. It compares the token with the name's fence, which is 0 if the node has
// forgotten it, and with the node's clock. It returns Granted, Stale, Behind or
// Ahead. Token 0, which is no token, is Granted.
func Judge(token, fence Token, now time.Time, window time.Duration) Status {
	oldest, newest := limits(fence, now, window)
	switch {
	case token == 0:
		return Granted
	case token <= fence:
		return Stale
	case int64(token) < oldest:
		// Even without a fence: the node may have forgotten a higher one.
		return Behind
	case int64(token) > newest:
		return Ahead
	}
	return Granted
}

// JudgeShared is the rule for a reader. Each name has a floor besides its fence:
// the highest token of an exclusive or slotted holder, or of a release. A reader
// need only be above the floor, and raises only the fence, so that readers do not
// refuse each other.
func JudgeShared(token, floor, fence Token, now time.Time, window time.Duration) Status {
	status := Judge(token, fence, now, window)
	if status == Stale && token > floor {
		if oldest, _ := limits(fence, now, window); int64(token) < oldest {
			return Behind
		}
		return Granted
	}
	return status
}

// limits returns what the clock allows, in microseconds. They are signed,
// because a window may reach back before 1970.
func limits(fence Token, now time.Time, window time.Duration) (oldest, newest int64) {
	clock, w := now.UnixMicro(), window.Microseconds()
	return clock - w, max(clock+w, int64(fence)+TokenLeap)
}
