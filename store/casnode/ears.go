package casnode

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// ears hear the wakes of a store. Until they do, and where the store is neither a Hearer
// nor a Ringer, waiters poll.
type ears struct {
	store Hearer // nil if nothing can be heard

	mu        sync.Mutex // guards all fields below
	listeners map[int]func(node.Wake)
	next      int
	hearing   bool // no wake is missed
	cancel    context.CancelFunc
	done      chan struct{}
	closed    bool
}

// waiter is a value that waits for a name.
type waiter struct{ name, value string }

// remembered is how long a waiter is known after it last asked. It asks far more
// often.
const remembered = 2 * time.Minute

// deafFor is how long to wait before the next try.
const deafFor = 5 * time.Second

// Listen calls f with every wake for the waiters of this node. It never does if
// the store is neither a Hearer nor a Ringer.
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
func (n *Node) hears() bool {
	e := &n.ears
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
			n.hear(ctx)
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

// hear hears until the node is closed, and connects again when it has to.
func (n *Node) hear(ctx context.Context) {
	e := &n.ears
	for ctx.Err() == nil {
		began, heard := time.Now(), false
		err := e.store.Hear(ctx, n.queue.process, func() {
			heard = true
			e.set(true)
			e.tell(node.Wake{Kind: node.WakeMissed}) // what came before may have been missed
		}, n.heard)
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
func (n *Node) heard(text string) {
	if name, wake, row, ok := parseMessage(text); ok {
		n.woken(waiter{name, wake.Value}, wake, row)
	}
}

// woken passes a wake on, with the row that came along. A turn for a waiter that has
// left is passed on to the next one.
func (n *Node) woken(w waiter, wake node.Wake, row Row) {
	ok := true
	switch {
	case n.queue.store == nil:
		_, ok = n.queue.find(w)
	case n.queue.has(w):
		if p, _ := n.queue.find(w); row.Version != "" {
			n.cache.turn(row, p.Place)
		}
	default:
		if ok = false; wake.Kind == node.WakeTurn {
			go n.forsaken(w)
		}
	}
	if ok {
		n.ears.tell(wake)
	}
}

// ringing adapts a Ringer to a Hearer. It tells no text, so the rows are read: they say for
// whom a name is kept.
type ringing struct {
	Ringer
	n *Node
}

func (r ringing) Hear(ctx context.Context, process string, ready func(), _ func(string)) error {
	return r.Ring(ctx, process, ready, r.n.queue.watching, func(row Row) bool {
		r.n.queue.saw(row)
		e, err := row.entry()
		w := waiter{row.Name, e.Queue.Head}
		has := func(h node.Holder) bool { return h.Value == w.value }
		if _, ours := r.n.queue.find(w); err != nil || !ours || slices.ContainsFunc(e.Holders, has) {
			return false
		}
		r.n.woken(w, node.Wake{Kind: node.WakeTurn, Value: w.value, Fence: e.Fence}, row)
		return true
	})
}

func (e *ears) tell(w node.Wake) {
	e.mu.Lock()
	all := slices.Collect(maps.Values(e.listeners))
	e.mu.Unlock()
	for _, f := range all {
		f(w)
	}
}

// mostHint is how long the state in a wake is at most.
const mostHint = 1000

// messages are the wakes of a decision as texts: the kind, the fence, the name and the
// waiter, and with the turn of a place the version and the state of the row.
func (d *decision) messages(row Row) (all []Wake) {
	encode := base64.RawStdEncoding.EncodeToString
	for _, w := range d.wakes {
		m := Wake{Text: fmt.Sprintf("%d %d %s %s", w.Kind, w.Fence, encode([]byte(row.Name)), encode([]byte(w.Value)))}
		if d.entry != nil {
			for _, v := range d.entry.Queue.Waiters {
				if v.Value == w.Value {
					m.Process = v.Process
				}
				if v.Value == w.Value && w.Kind == node.WakeTurn {
					m.Waiter = nameOf(v.Share, v.Until, v.Value)
				}
			}
			if w.Kind == node.WakeTurn && len(row.State) <= mostHint {
				m.Text += " " + row.Version + " " + encode(row.State)
			}
		}
		all = append(all, m)
	}
	return all
}

// parseMessage reads what messages returns. The row has no version if it is not there.
func parseMessage(text string) (name string, w node.Wake, row Row, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 && len(parts) != 6 {
		return name, w, row, false
	}
	kind, err1 := strconv.ParseUint(parts[0], 10, 8)
	fence, err2 := strconv.ParseUint(parts[1], 10, 64)
	decode := base64.RawStdEncoding.DecodeString
	encoded, err3 := decode(parts[2])
	value, err4 := decode(parts[3])
	err := errors.Join(err1, err2, err3, err4)
	w = node.Wake{Kind: node.WakeKind(kind), Fence: node.Token(fence), Value: string(value)}
	if row.Name = string(encoded); len(parts) == 6 {
		row.Version = parts[4]
		var err5 error
		row.State, err5 = decode(parts[5])
		err = errors.Join(err, err5)
	}
	return row.Name, w, row, err == nil && w.Kind >= node.WakeTurn && w.Kind <= node.WakeCall
}
