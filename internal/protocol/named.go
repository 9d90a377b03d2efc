package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// Named returns the text of a membership that has a name. The number of nodes is
// in it, so that clients with the same name and another number are refused: a
// quorum of theirs may have no node in common with one of ours.
func Named(name string, nodes int) string {
	return fmt.Sprintf("%s (nodes: %d)", name, nodes)
}

// ParseNamed returns the name and the number of nodes of a membership's text; ok
// is false for one that has no name.
func ParseNamed(text string) (name string, nodes int, ok bool) {
	i := strings.LastIndex(text, " (nodes: ")
	if i < 0 {
		return "", 0, false
	}
	nodes, err := strconv.Atoi(strings.TrimSuffix(text[i+len(" (nodes: "):], ")"))
	return text[:i], nodes, err == nil && Named(text[:i], nodes) == text
}

// membershipSize returns the number of nodes of a membership.
func membershipSize(text string) int {
	if _, nodes, isNamed := ParseNamed(text); isNamed {
		return nodes
	}
	return len(strings.Fields(text))
}
