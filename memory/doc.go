// Package memory keeps locks in the memory of one process, for tests of
// programs that use redlatch.
//
// # Basics
//
// New makes one node, Nodes the several of a quorum. Every client that is
// given the same node contends for the same locks, as if each ran on a machine
// of its own:
//
//	node := memory.New(memory.Options{})
//	a, err := redlatch.New([]redlatch.Node{node}, redlatch.Options{})
//	b, err := redlatch.New([]redlatch.Node{node}, redlatch.Options{})
//
// A node does everything that the others do: expiry, fencing tokens, the
// queue. It starts no goroutine and arms no timer, so it lives as well inside
// a bubble of testing/synctest, where a lock of an hour expires at once.
// SetDown has it refuse to answer, and Options.Clock gives it a wrong clock,
// to see how a program bears it.
//
// # Caveats
//
// A lock in memory excludes nobody outside the process, and is gone when the
// process ends.
package memory
