// Package screen writes lines to a terminal: in place, in colour, with a bar for
// progress. The commands share it.
package screen

import "strings"

// Bar draws which part of the whole is done.
func Bar(room int, done float64) string {
	full := int(float64(room) * min(1, max(0, done)))
	return strings.Repeat("#", full) + strings.Repeat(".", room-full)
}
