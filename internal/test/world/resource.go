package world

import "github.com/redlatch/redlatch/node"

// Resource is what the lock protects, as the page shows it. It compares the token of
// each write with the highest that it has seen, as package fence does.
type Resource struct {
	Checks  bool
	Highest string // token; empty for none
	Writes  []Write
	highest node.Token
}

// Write is a write that reached the resource.
type Write struct {
	By, Token string
	// Accepted says that the resource took it, and Stale that a later holder had
	// written before.
	Accepted, Stale bool
}

// take takes or refuses a write.
func (r *Resource) take(by string, t node.Token) Write {
	wr := Write{By: by, Token: Text(t), Stale: t < r.highest, Accepted: !r.Checks || t >= r.highest}
	r.highest = max(r.highest, t)
	r.Highest = Text(r.highest)
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
