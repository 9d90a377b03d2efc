package redis

import (
	"strings"

	"github.com/redlatch/redlatch/node"
)

// parseFence reads a fence as the scripts store it:
//
//	FENCE                20 digits
//	FENCE HOLDERTOKEN    20 digits, a space, 20 digits
//
// A grant writes the first form: its token is the fence. The second form is
// written where the fence is raised, or stays higher, while a value holds the
// lock with another token: by the release of a value that does not hold it, by
// an offer, and by a repair. Zeros are a holder without a token.
//
// The scripts rely on three things. The first 20 characters are the fence. The
// last 20 are the token of the holder, if there is one. And a stored fence
// compares with 20 digits by < and >= as its first 20 characters do; for any
// other comparison, and to count with it, it is cut first.
//
// What is no token was not written by this package, and counts as none.
func parseFence(stored string) (fence, holder node.Token) {
	first, own, raised := strings.Cut(stored, " ")
	fence, _ = node.ParseToken(first)
	if !raised {
		return fence, fence
	}
	holder, _ = node.ParseToken(own)
	return fence, holder
}
