package world

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// Resource is what the lock protects. It compares the token of each write with
// the highest that it has seen, as package fence does.
type Resource struct {
	Checks  bool
	Highest node.Token
	Writes  []Write
}

// Write is a write that reached the resource.
type Write struct {
	At    time.Duration
	By    string
	Token node.Token
	// Accepted says that the resource took it, and Stale that a later holder had
	// written before.
	Accepted, Stale bool
}

// take takes or refuses a write.
func (r *Resource) take(at time.Duration, by string, t node.Token) Write {
	wr := Write{At: at, By: by, Token: t, Stale: t < r.Highest, Accepted: !r.Checks || t >= r.Highest}
	r.Highest = max(r.Highest, t)
	r.Writes = append(r.Writes, wr)
	return wr
}

// Last is the last write of a client; the zero value if there is none.
func (r *Resource) Last(by string) (last Write) {
	for _, wr := range r.Writes {
		if wr.By == by {
			last = wr
		}
	}
	return last
}
