package redis

import (
	"strings"

	"github.com/redlatch/redlatch/node"
)

// parseFence reads a fence as the scripts store it; lua/lib/fence.lua has
// the format. What is no token was not written by this package, and counts as
// none. Only the scripts need the floor.
func parseFence(stored string) (fence, holder node.Token) {
	first, own, raised := strings.Cut(stored, " ")
	fence, _ = node.ParseToken(first)
	if !raised {
		return fence, fence
	}
	own, _, _ = strings.Cut(own, " ") // the floor follows
	holder, _ = node.ParseToken(own)
	return fence, holder
}
