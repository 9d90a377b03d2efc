//go:build unix

package chaos

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// recorder collects the events of all clients, and knows the state of the run.
type recorder struct {
	mu      sync.Mutex
	events  []Event
	counts  Counts
	holding map[attemptID]Event // leases that were acquired and not given up
	last    map[int]int64       // by client: when it last got a lock
	changed chan struct{}       // closed and replaced with each Got
}

// attemptID identifies one request for a lock.
type attemptID struct{ client, life, seq int }

func (e *Event) attempt() attemptID { return attemptID{e.Client, e.Life, e.Seq} }

func newRecorder() *recorder {
	return &recorder{holding: map[attemptID]Event{}, last: map[int]int64{}, changed: make(chan struct{})}
}

func (r *recorder) hear(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.counts.count(e)
	held, holds := r.holding[e.attempt()]
	switch e.Kind {
	case Got:
		held, holds = e, true
		r.last[e.Client] = e.At
		close(r.changed)
		r.changed = make(chan struct{})
	case Extended, Downgraded:
		held.Deadline = max(held.Deadline, e.Deadline)
	case Downgrade:
		held.Share = Share{Mode: Reader}
	case Release, Lost:
		holds = false
	}
	if holds {
		r.holding[e.attempt()] = held
	} else {
		delete(r.holding, e.attempt())
	}
}

// forgotten is how long after its deadline a lease is remembered without
// further events: a lease with keep-alive may be valid for longer than we know.
const forgotten = int64(10 * time.Second)

// holders returns, for each name, the leases that are not over, in the order in
// which they were acquired.
func (r *recorder) holders() map[string][]Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, t := map[string][]Event{}, now()
	for id, e := range r.holding {
		switch {
		case e.Deadline+forgotten < t:
			delete(r.holding, id)
		case e.Deadline >= t:
			all[e.Name] = append(all[e.Name], e)
		}
	}
	for _, leases := range all {
		slices.SortFunc(leases, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	}
	return all
}

// holdingClients returns the clients that hold a lock, by number.
func (r *recorder) holdingClients() map[int]bool {
	clients := map[int]bool{}
	for _, leases := range r.holders() {
		for _, e := range leases {
			clients[e.Client] = true
		}
	}
	return clients
}

// since returns how many clients got a lock after a moment, and a channel that
// is closed when that may have changed.
func (r *recorder) since(moment int64) (clients map[int]bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clients = map[int]bool{}
	for client, at := range r.last {
		if at > moment {
			clients[client] = true
		}
	}
	return clients, r.changed
}

// all returns the events so far, and their counts.
func (r *recorder) all() ([]Event, Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events, r.counts
}
