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
	counts  map[Kind]int
	holding map[string]map[attemptID]Event // by name: leases that were acquired and not given up
	last    map[int]int64                  // by client: when it last got a lock
	changed chan struct{}                  // closed and replaced with each Got
}

// attemptID identifies one request for a lock.
type attemptID struct{ client, life, seq int }

func (e *Event) attempt() attemptID { return attemptID{e.Client, e.Life, e.Seq} }

func newRecorder() *recorder {
	return &recorder{counts: map[Kind]int{}, holding: map[string]map[attemptID]Event{}, last: map[int]int64{}, changed: make(chan struct{})}
}

func (r *recorder) hear(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.counts[e.Kind]++
	switch e.Kind {
	case Got:
		if r.holding[e.Name] == nil {
			r.holding[e.Name] = map[attemptID]Event{}
		}
		r.holding[e.Name][e.attempt()] = e
		r.last[e.Client] = e.At
		close(r.changed)
		r.changed = make(chan struct{})
	case Extended, Downgraded:
		if h, ok := r.holding[e.Name][e.attempt()]; ok && e.Deadline > h.Deadline {
			h.Deadline = e.Deadline
			r.holding[e.Name][e.attempt()] = h
		}
	case Downgrade:
		if h, ok := r.holding[e.Name][e.attempt()]; ok {
			h.Share = Share{Mode: Reader}
			r.holding[e.Name][e.attempt()] = h
		}
	case Release, Lost:
		delete(r.holding[e.Name], e.attempt())
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
	for name, leases := range r.holding {
		for id, e := range leases {
			switch {
			case e.Deadline+forgotten < t:
				delete(leases, id)
			case e.Deadline >= t:
				all[name] = append(all[name], e)
			}
		}
		slices.SortFunc(all[name], func(a, b Event) int { return cmp.Compare(a.At, b.At) })
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

func (r *recorder) count(kinds ...Kind) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range kinds {
		n += r.counts[k]
	}
	return n
}

func (r *recorder) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}
