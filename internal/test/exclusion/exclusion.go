// Package exclusion has the rule by which tests judge exclusion. It shares nothing
// with node.Room and node.Holders, which it judges.
package exclusion

import "github.com/redlatch/redlatch/node"

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
