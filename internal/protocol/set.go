package protocol

import "math/bits"

// MaxNodes is the highest number of nodes.
const MaxNodes = 15

// Set is a set of nodes, by their index.
type Set uint16

// All returns the set of the first n nodes.
func All(n int) Set { return 1<<n - 1 }

// Of returns the set of one node.
func Of(i int) Set { return 1 << i }

// Has reports whether node i is in the set.
func (s Set) Has(i int) bool { return s&(1<<i) != 0 }

// Count returns the number of nodes in the set.
func (s Set) Count() int { return bits.OnesCount16(uint16(s)) }
