//go:build unix

package chaos

import (
	"slices"
	"sync"
)

// recorder collects the events of all clients, and knows who holds a lock.
type recorder struct {
	mu      sync.Mutex
	events  []Event
	holding map[attemptID]int64 // leases that were acquired and not given up: their deadlines
	last    map[int]int64       // by client: when it last got a lock
}

// attemptID identifies one request for a lock.
type attemptID struct{ client, life, seq int }

func (e *Event) attempt() attemptID { return attemptID{e.Client, e.Life, e.Seq} }

func (r *recorder) hear(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	switch e.Kind {
	case Got:
		r.last[e.Client] = e.At
		r.holding[e.attempt()] = e.Deadline
	case Extended, Downgraded:
		r.holding[e.attempt()] = max(r.holding[e.attempt()], e.Deadline)
	case Release, Lost:
		delete(r.holding, e.attempt())
	}
}

// holders returns the clients that hold a lock, by number.
func (r *recorder) holders() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	clients, t := map[int]bool{}, now()
	for id, deadline := range r.holding {
		if deadline < t {
			delete(r.holding, id)
			continue
		}
		clients[id.client] = true
	}
	return clients
}

// since returns the clients that got a lock after a moment.
func (r *recorder) since(moment int64) (clients []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for client, at := range r.last {
		if at > moment {
			clients = append(clients, client)
		}
	}
	slices.Sort(clients)
	return clients
}

// all returns the events so far.
func (r *recorder) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}
