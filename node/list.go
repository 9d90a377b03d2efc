package node

import "time"

// MaxListed is how many waiters a Look returns at the most, and how many occurrences
// that are completed.
const MaxListed = 100

// Holder is one holder of a name on a node.
type Holder struct {
	Value string
	// Token is the token that it was last granted with; 0 for none.
	Token Token
	// Until is its expiry.
	Until time.Time
	Share
}

// Listing is what a node knows about one name.
type Listing struct {
	// Name is the key, prefix included.
	Name string
	// Reply is as to an OpInspect: Held, Foreign or Absent.
	Reply Reply
	// Holders are the holders, in the order in which they came (Held).
	Holders []Holder
	// Broken is the token of the last OpBreak that took the name from a holder; 0
	// for none. The node remembers it for its Retention at least.
	Broken Token
	// Waiting is the number of waiters.
	Waiting int
	// Waiters are the first of them, in the order of the queue.
	Waiters []Waiter
	// Completed are the records of the name, the one that is forgotten last first.
	Completed []Record
	// Since is from when on the node's records of the name are complete; zero if
	// it has no memory of the name.
	Since time.Time
}

// Waiter is a place in a node's queue.
type Waiter struct {
	Value  string
	Ticket int64 // as in a Request
	Share        // what it waits for; its slot does not matter
	// Process is whose place it is, on a node that keeps each place by itself, and
	// Until when it stops to wait, by the same clock as Ticket; 0 if it does not say.
	Process string
	Until   int64
}
