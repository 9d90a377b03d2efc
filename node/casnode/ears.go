package casnode

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// ears hear the wakes of a store. Until they do, and where the store is no Hearer,
// waiters poll.
type ears struct {
	store Hearer // nil if nothing can be heard

	mu        sync.Mutex // guards all fields below
	listeners map[int]func(node.Wake)
	next      int
	hearing   bool // no wake is missed
	cancel    context.CancelFunc
	done      chan struct{}
	closed    bool

	// waiters are those that wait through this node, and when each last asked.
	// Wakes for others are not passed on.
	waiters map[waiter]time.Time
	pruned  time.Time
}

// waiter is a value that waits for a name.
type waiter struct{ name, value string }

// remembered is how long a waiter is known after it last asked. It asks far more
// often.
const remembered = 2 * time.Minute

// deafFor is how long to wait before the next try.
const deafFor = 5 * time.Second

// expect notes that somebody may wait through this node.
func (e *ears) expect(w waiter) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiters == nil {
		e.waiters = map[waiter]time.Time{}
	}
	e.waiters[w] = now
	if now.Sub(e.pruned) > remembered {
		e.pruned = now
		maps.DeleteFunc(e.waiters, func(_ waiter, at time.Time) bool { return now.Sub(at) > remembered })
	}
}

// Listen calls f with every wake for the waiters of this node. It never does if
// the store is no Hearer.
func (n *Node) Listen(f func(node.Wake)) (stop func()) {
	e := &n.ears
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listeners == nil {
		e.listeners = map[int]func(node.Wake){}
	}
	e.next++
	id := e.next
	e.listeners[id] = f
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.listeners, id)
	}
}

// hears reports whether waiters that ask now will be notified. If not, it begins
// to listen, if anybody wants that.
func (e *ears) hears() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store == nil || e.closed || len(e.listeners) == 0 {
		return false
	}
	if e.cancel == nil {
		var ctx context.Context
		ctx, e.cancel = context.WithCancel(context.Background())
		e.done = make(chan struct{})
		go func() {
			defer close(e.done)
			e.run(ctx)
		}()
	}
	return e.hearing
}

func (e *ears) close() {
	e.mu.Lock()
	e.closed = true
	cancel, done := e.cancel, e.done
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// run hears until the node is closed, and connects again when it has to.
func (e *ears) run(ctx context.Context) {
	for ctx.Err() == nil {
		began, heard := time.Now(), false
		err := e.store.Hear(ctx, func() {
			heard = true
			e.set(true)
			e.tell(node.Wake{Kind: node.WakeMissed}) // what came before may have been missed
		}, e.heard)
		e.set(false)
		if ctx.Err() != nil {
			return
		}
		e.tell(node.Wake{Kind: node.WakeMissed, Err: err})
		if heard && time.Since(began) > deafFor {
			continue // it worked until now
		}
		select {
		case <-ctx.Done():
		case <-time.After(deafFor):
		}
	}
}

func (e *ears) set(hearing bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hearing = hearing
}

// heard passes a wake on if it is for a waiter of this node.
func (e *ears) heard(text string) {
	name, wake, ok := parseMessage(text)
	e.mu.Lock()
	_, ours := e.waiters[waiter{name, wake.Value}]
	e.mu.Unlock()
	if ok && ours {
		e.tell(wake)
	}
}

func (e *ears) tell(w node.Wake) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.listeners))
	e.mu.Unlock()
	for _, f := range all {
		f(w)
	}
}

// message is a wake as a text without quotes: its kind, the fence, the name and
// the waiter.
func message(name string, w node.Wake) string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("%d %d %s %s", w.Kind, w.Fence, encode([]byte(name)), encode([]byte(w.Value)))
}

// messages are the wakes of a name as texts.
func messages(name string, wakes []node.Wake) (texts []string) {
	for _, w := range wakes {
		texts = append(texts, message(name, w))
	}
	return texts
}

// parseMessage reads what message returns.
func parseMessage(text string) (name string, w node.Wake, ok bool) {
	var encoded, value []byte
	_, err := fmt.Sscanf(text, "%d %d %s %s", &w.Kind, &w.Fence, &encoded, &value)
	decode := base64.RawStdEncoding.AppendDecode
	encoded, err1 := decode(nil, encoded)
	value, err2 := decode(nil, value)
	w.Value = string(value)
	return string(encoded), w, err == nil && err1 == nil && err2 == nil && w.Kind >= node.WakeTurn && w.Kind <= node.WakeCall
}
