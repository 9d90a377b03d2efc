package node

import "context"

// Lister is implemented by a Node that can say which names it knows, and who
// waits for them. Looking changes nothing.
type Lister interface {
	Node

	// List calls found for each name that begins with prefix and is held or
	// waited for, once, in no order, and without Waiters. It looks at the store
	// bit by bit: a name that is taken or freed meanwhile may be missing.
	List(ctx context.Context, prefix string, found func(Listing)) error

	// Look returns what the node knows of one name at one moment, with the
	// first MaxWaiters of those who wait.
	Look(ctx context.Context, name string) (Listing, error)
}

// MaxWaiters is how many waiters a Look names at the most.
const MaxWaiters = 100

// Listing is what a node knows of one name.
type Listing struct {
	// Name is the key, prefix included.
	Name string
	// Reply is as to an OpInspect: Held, Foreign or Absent.
	Reply Reply
	// Waiting is how many wait.
	Waiting int
	// Waiters are the first of them, in the order of the queue.
	Waiters []Waiter
}

// Waiter is a place in a node's queue.
type Waiter struct {
	Value  string
	Ticket int64 // as in a Request
}
