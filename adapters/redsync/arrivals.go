package redsync

import (
	"context"
	"sync"
	"time"
)

// arrivals notes which requests were answered, where somebody waits for all
// answers. redlatch does not wait for servers whose answer cannot change the
// result; redsync does, unless the mutex was made WithFailFast.
type arrivals struct {
	mu      sync.Mutex
	awaited map[request]*arrival
}

// request is one operation of one lock, on every server.
type request struct{ script, value string }

// arrival is what is left to be answered.
type arrival struct {
	left int
	all  chan struct{} // closed when nothing is
}

// expect begins to count the answers of so many servers.
func (a *arrivals) expect(r request, servers int) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.awaited[r]; w != nil {
		return w // a second caller gets the result of the first one's round
	}
	w := &arrival{left: servers, all: make(chan struct{})}
	if a.awaited == nil {
		a.awaited = map[request]*arrival{}
	}
	a.awaited[r] = w
	return w
}

// note counts an answer.
func (a *arrivals) note(r request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.awaited[r]; w != nil {
		if w.left--; w.left == 0 {
			close(w.all)
			delete(a.awaited, r)
		}
	}
}

// wait waits until all servers have answered, or the limit has passed; not at
// all if the operation has failed.
func (a *arrivals) wait(ctx context.Context, r request, w *arrival, limit time.Duration, failed error) {
	if failed == nil {
		select {
		case <-w.all:
		case <-time.After(limit):
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.awaited[r] == w {
		delete(a.awaited, r)
	}
}
