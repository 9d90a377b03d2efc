package node

import "time"

// Waker is implemented by a Node that keeps a queue and notifies a waiter when
// it is its turn, so that it need not ask.
type Waker interface {
	Node
	// Listen has f called with every notification for the waiters that are
	// queued through this node, until stop is called. f does not block. A node
	// may open the connection on which wakes come only when somebody waits; it
	// then queues nobody before that connection is up.
	Listen(f func(Wake)) (stop func())
}

// A Wake is a notification from a Waker to a waiter. Wakes may be lost, late,
// or repeated: they save time, and nothing else depends on them.
type Wake struct {
	Kind WakeKind
	// Value is the waiter; empty with WakeMissed, which is for all.
	Value string
	// Fence is the highest token that the node granted for the name; 0 if it
	// knows of none.
	Fence Token
	// Err is why no wakes can come, with WakeMissed. The node still keeps the
	// queue, but must be asked.
	Err error
}

// WakeKind says what a Wake is about.
type WakeKind uint8

// What a node can notify a waiter of.
const (
	// WakeTurn: the name is free, and kept for you for TurnLease.
	WakeTurn WakeKind = iota + 1
	// WakeNear: you are one of the first two in the queue. From now on your
	// place lapses unless it is renewed.
	WakeNear
	// WakeMissed: the connection on which wakes come is up, or up again, or
	// cannot be had. Anything before it may have been missed.
	WakeMissed
	// WakeCall: those before you seem to be gone. Ask at once: a waiter that
	// has not asked when they lapse loses its place with them.
	WakeCall
)

// Asks reports whether the waiter that is notified has to ask the node at once.
func (k WakeKind) Asks() bool { return k == WakeTurn || k == WakeCall }

const (
	// WaiterLease is how long the head of a node's queue keeps its place
	// without renewing it.
	WaiterLease = time.Second

	// TurnLease is how long a Waker keeps a free name for the waiter that it
	// woke. One that does not ask by then loses its place, together with those
	// behind it that were called. A waiter that lost its place and is alive has
	// it back when it asks.
	TurnLease = 300 * time.Millisecond
)
