// Package exclusion judges histories of leases and tokens, for the simulation, the
// torture, interop, the bench and the stores' tests. It shares nothing with nodestate.Room
// and nodestate.Holders, which it judges.
package exclusion

import (
	"testing"

	"github.com/redlatch/redlatch/node"
)

// Conflict reports whether two leases with these shares must not be valid at the
// same time.
func Conflict(a, b node.Share) bool {
	switch {
	case a.Mode == node.Shared && b.Mode == node.Shared:
		return false
	case a.Mode == node.Slotted && b.Mode == node.Slotted && a.Slots == b.Slots:
		return a.Slot == b.Slot
	}
	return true
}

// Never fails and ends a test because a promise was broken: two holders, a token
// that is not higher, a grant that must not be. Every check of one comes here, and
// asks nothing of the machine: no stall explains it, and nothing repeats it.
func Never(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Fatalf("a promise is broken: "+format, args...)
}
