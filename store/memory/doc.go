// Package memory keeps locks in the memory of one process, for tests of
// programs that use redlatch.
//
// # Basics
//
// New makes one node. Nodes makes several, for a quorum. All clients of the
// same node contend for the same locks, as if each ran on its own machine:
//
//	node := memory.New(nil)
//	a, err := redlatch.New([]redlatch.Node{node}, nil)
//	b, err := redlatch.New([]redlatch.Node{node}, nil)
//
// A node in memory does what other nodes do: expiry, fencing tokens, the queue. It
// has no marker: a restart of the program ends its clients too. It starts no
// goroutine and no timer, so it also works inside a bubble of testing/synctest,
// where a lock of an hour expires at once. To test how a program handles faults, SetDown makes the node fail, and Options.Clock gives
// it a wrong clock.
//
// # Caveats
//
// A lock in memory excludes nobody outside the process, and is gone when the
// process ends.
package memory
