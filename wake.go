package redlatch

import "time"

// Waker is implemented by a Node that keeps a queue and tells a waiter when it
// is its turn, so that it need not ask.
type Waker interface {
	Node
	// Listen has f called with what the node tells the waiters that are queued
	// through it, until stop is called. f does not block. A node may put off
	// opening the way by which wakes come until somebody waits; it then queues
	// nobody before that way stands.
	Listen(f func(Wake)) (stop func())
}

// A Wake is what a Waker tells its waiters. Wakes may be lost, late, or twice
// the same: they speed things up, and nothing else leans on them.
type Wake struct {
	Kind WakeKind
	// Value is whom it is for; empty with WakeMissed, which is for all.
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

// What a node can tell.
const (
	// WakeTurn: the name is free, and kept for you for a moment.
	WakeTurn WakeKind = iota + 1
	// WakeNear: you are one of the first two in line. From now on your place
	// lapses unless it is renewed.
	WakeNear
	// WakeMissed: the way by which wakes come stands, or stands again, or
	// cannot be had. Anything before it may have been missed.
	WakeMissed
	// WakeCall: those before you seem to be gone. Ask at once: who has not asked
	// when they lapse loses its place with them.
	WakeCall
)

// asks reports whether the one that is woken is to ask the node at once.
func (k WakeKind) asks() bool { return k == WakeTurn || k == WakeCall }

const (
	// WaiterLease is how long the first place in a node's queue stands without
	// being renewed.
	WaiterLease = time.Second

	// TurnLease is how long a Waker keeps a free name for the waiter that it
	// woke. One that does not ask by then loses its place, together with those
	// behind it that were called. A waiter that lost its place and is alive has
	// it back when it asks.
	TurnLease = 300 * time.Millisecond
)
