package node

import "time"

// A Wake is a notification from a Waker to a waiter. Wakes may be lost, late,
// or repeated: they save time, and nothing else depends on them.
type Wake struct {
	Kind WakeKind
	// Value is the waiter; empty with WakeMissed, which is for all waiters.
	Value string
	// Fence is the highest token that the node granted for the name; 0 if it
	// remembers none.
	Fence Token
	// Err is why no notifications can come, with WakeMissed. The node still
	// keeps the queue, but waiters must poll.
	Err error
}

// WakeKind is the kind of a Wake.
type WakeKind uint8

// The kinds of notification. A node that keeps each place by itself, as long as its
// process lives, sends neither WakeNear nor WakeCall.
const (
	// WakeTurn: the name is free, and kept for you for TurnLease.
	WakeTurn WakeKind = iota + 1
	// WakeNear: you are one of the first two in the queue. From now on your
	// place may lapse if it is not renewed.
	WakeNear
	// WakeMissed: the connection for notifications is up, or up again, or
	// cannot be opened. Earlier notifications may have been lost.
	WakeMissed
	// WakeCall: those before you seem to be gone. Ask at once, within
	// TurnLease: a waiter that has not asked when their places lapse loses its
	// own with them.
	WakeCall
)

const (
	// WaiterLease is how long the head of a node queue keeps its place without
	// renewing it, and a name that is free for it where it cannot be notified. Where
	// places live as long as their processes, only the second holds.
	WaiterLease = time.Second

	// TurnLease is how long a Waker keeps a free name for the waiter that it
	// notified. A waiter that does not ask by then loses its place, together
	// with those behind it that were called, or with all places for that name of its
	// process if they live with that. A waiter that is alive gets its place back when
	// it asks.
	TurnLease = 300 * time.Millisecond
)
