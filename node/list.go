package node

import (
	"context"
	"time"
)

// Lister is implemented by a Node that can list its names and their waiters.
// Both methods change nothing.
type Lister interface {
	Node

	// List calls found once for each name that begins with prefix and is held
	// or waited for, in no particular order and without Waiters, Marks and
	// Since. It reads the store in steps: a name that is taken or freed
	// meanwhile may be missing.
	List(ctx context.Context, prefix string, found func(Listing)) error

	// Look returns what the node knows about one name at one moment, with the
	// first MaxWaiters waiters and MaxMarks marks.
	Look(ctx context.Context, name string) (Listing, error)
}

// MaxWaiters is the highest number of waiters that a Look returns.
const MaxWaiters = 100

// MaxMarks is the highest number of marks that a Look returns.
const MaxMarks = 100

// Listing is what a node knows about one name.
type Listing struct {
	// Name is the key, prefix included.
	Name string
	// Reply is as to an OpInspect: Held, Foreign or Absent.
	Reply Reply
	// Holders are the holders, in the order in which they came (Held).
	Holders []Holder
	// Waiting is the number of waiters.
	Waiting int
	// Waiters are the first of them, in the order of the queue.
	Waiters []Waiter
	// Marks are the occurrences that are done, the one that is forgotten last
	// first.
	Marks []DoneMark
	// Since is when the node began to remember the name's marks; zero if it does
	// not.
	Since time.Time
}

// DoneMark is a note that an occurrence is done; see OpRemember.
type DoneMark struct {
	Occurrence string
	Until      time.Time // when the node forgets it
}

// Waiter is a place in a node's queue.
type Waiter struct {
	Value  string
	Ticket int64 // as in a Request
	Share        // what it waits for; its slot does not matter
}
