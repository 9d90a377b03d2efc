package runner

import (
	"slices"
	"sync"
	"time"
)

// workers sends requests on goroutines that stay for a while after a request.
// The stack of a new goroutine grows several times in the driver of a node, and
// that costs as much as all the rest of a round.
type workers struct {
	mu       sync.Mutex
	idle     []worker // the last one worked last
	fewest   int      // the least length of idle since the last call of retire
	retiring *time.Timer
	closed   bool
}

// worker is how a worker gets its next request. The worker ends when it is
// closed.
type worker chan *flight

// workerStays is how long a worker stays at least without a request.
const workerStays = time.Second

// call sends a request, and handles its answer, on another goroutine.
func (ws *workers) call(f *flight) {
	ws.mu.Lock()
	last := len(ws.idle) - 1
	if last < 0 {
		ws.mu.Unlock()
		go ws.work(make(worker, 1), f)
		return
	}
	w := ws.idle[last]
	ws.idle = ws.idle[:last]
	ws.fewest = min(ws.fewest, last)
	ws.mu.Unlock()
	w <- f
}

func (ws *workers) work(w worker, f *flight) {
	for f != nil {
		f.call()
		if !ws.stay(w) {
			return
		}
		f = <-w
	}
}

// stay adds a worker to the idle ones. It returns false after close.
func (ws *workers) stay(w worker) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return false
	}
	ws.idle = append(ws.idle, w)
	if ws.retiring == nil {
		ws.retiring = time.AfterFunc(workerStays, ws.retire)
	}
	return true
}

// retire ends the workers that had no request since it was last called.
func (ws *workers) retire() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.idle[:ws.fewest] {
		close(w)
	}
	ws.idle = slices.Delete(ws.idle, 0, ws.fewest)
	ws.fewest = len(ws.idle)
	if ws.closed || ws.fewest == 0 {
		ws.retiring = nil
		return
	}
	ws.retiring.Reset(workerStays)
}

// close ends the workers. Those that still work end after that.
func (ws *workers) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for _, w := range ws.idle {
		close(w)
	}
	ws.idle, ws.fewest = nil, 0
	if ws.retiring != nil {
		ws.retiring.Stop()
	}
}
