package casnode

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// Node is a node over a Store.
type Node struct {
	store Store

	preparing sync.Mutex   // guards prepares
	prepares  int64        // how often the store was prepared
	prepared  atomic.Int64 // which of them is valid; 0 for none

	turns  chan struct{} // one for each request in flight; nil for no limit
	queued atomic.Int32
	ears   ears
	swept  sweep
	cache  cache
	queue  places

	observer *observer
	timers   Timers       // nil if the store has none
	started  atomic.Int64 // timers
}

var (
	_ node.Guarded    = (*Node)(nil)
	_ node.Waker      = (*Node)(nil)
	_ node.Lister     = (*Node)(nil)
	_ node.Evidencer  = (*Node)(nil)
	_ node.Identifier = (*Node)(nil)
	_ node.Queuer     = (*Node)(nil)
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Requests is how many requests use the store at a time: as many as it has
	// connections. The others wait for their turn in the node, and get
	// node.ErrBusy if that takes too long. Defaults to no limit.
	Requests int
	// Poll has waiters poll, though the store is a Hearer or a Ringer. Defaults to false.
	Poll bool
	// Uptime is a monotonic clock, by which the times in a store without a clock
	// are counted. It is for tests. Defaults to that of the process.
	Uptime func() time.Duration
}

// New returns a node. opts may be nil.
func New(store Store, opts *Options) *Node {
	n := &Node{store: store}
	if opts == nil {
		opts = new(Options)
	}
	if opts.Requests > 0 {
		n.turns = make(chan struct{}, opts.Requests)
	}
	if h, ok := store.(Hearer); ok && !opts.Poll {
		n.ears.store = h
	}
	if r, rings := store.(Ringer); rings && !opts.Poll {
		n.ears.store = ringing{r, n}
	}
	_, n.cache.stamps = store.(Stamper)
	n.observer = newObserver(opts.Uptime)
	n.cache.uptime = n.observer.uptime
	n.queue = newPlaces(store, n.observer.uptime)
	n.cache.placed = n.queue.store != nil
	n.timers, _ = store.(Timers)
	return n
}

// prepare prepares the store before its first use.
func (n *Node) prepare(ctx context.Context) error {
	if n.prepared.Load() > 0 {
		return nil
	}
	n.preparing.Lock()
	defer n.preparing.Unlock()
	if n.prepared.Load() > 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p, ok := n.store.(Preparer); ok {
		if err := p.Prepare(ctx); err != nil {
			return err
		}
	}
	n.prepares++
	n.prepared.Store(n.prepares)
	return nil
}

// mostPrepares is how often a request has the store be prepared.
const mostPrepares = 3

// read reads a row, from a store that is prepared.
func (n *Node) read(ctx context.Context, name string) (Snapshot, error) {
	return n.present(ctx, name, func() (Snapshot, error) { return n.store.Read(ctx, name) })
}

// present returns what a call to the store says of a name.
func (n *Node) present(ctx context.Context, name string, call func() (Snapshot, error)) (Snapshot, error) {
	for try := 1; ; try++ {
		if err := n.prepare(ctx); err != nil {
			return Snapshot{}, err
		}
		by := n.prepared.Load()
		s, err := call()
		if err == nil {
			s.Row.Name = name
			err = n.look(&s)
		}
		if !errors.Is(err, ErrUnprepared) {
			return s, err
		}
		n.prepared.CompareAndSwap(by, 0)
		if try == mostPrepares {
			return s, err
		}
	}
}

// String names the node.
func (n *Node) String() string { return n.store.String() }

// Close closes the store.
func (n *Node) Close() error {
	n.ears.close()
	return n.store.Close()
}

// GuardsAlone reports true: another server may take the place of this one.
func (n *Node) GuardsAlone() bool { return true }

// Prompt reports true: a Store returns when its context ends.
func (n *Node) Prompt() bool { return true }

// Do executes one request.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if n.queue.store == nil && (req.Wait || req.Op == node.OpYield) {
		n.queue.meet(waiter{req.Name, req.Value}) // wakes for others are not passed on
	}
	reply, err := n.do(ctx, req)
	reply.Wakes = reply.Rank > 0 && n.hears()
	return reply, err
}

func (n *Node) do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := cmp.Or(checkName(req.Name), nodestate.Check(req)); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	if err := ctx.Err(); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	ctx, end, err := n.turn(ctx, req.Op)
	if err != nil {
		return node.Reply{}, n.explain(err)
	}
	defer end()
	n.queue.comes(req)
	if n.queue.store != nil && (req.Op == node.OpAcquire || req.Op == node.OpRepair) {
		asks := n.queue.writing(req) // also while it has read, and not written
		asks.Add(1)
		defer asks.Add(-1)
	}
	for t := (tries{}); ; {
		reply, done, next, err := n.try(ctx, req, t.present)
		if done {
			return reply, err
		}
		if err := n.again(ctx, &t, req, next, err); err != nil {
			return node.Reply{}, err
		}
	}
}

func checkName(name string) error {
	if name == MarkerName {
		return &node.ConfigError{Field: "name", Value: name, Bound: "a name of 1 byte or more"}
	}
	return nil
}

// mostRetries is how often a request that was refused is tried again at once, if the store
// says what is there now.
const mostRetries = 2

// try executes a request once, on s if that is not empty. done is false if another one
// changed the row in between: then present is what is there now, or empty.
func (n *Node) try(ctx context.Context, req node.Request, s Snapshot) (reply node.Reply, done bool, present Snapshot, err error) {
	name := req.Name
	if s.Server == "" {
		s, reply, done, err = n.foresee(ctx, req)
		if done || err != nil {
			return reply, done, present, err
		}
	}
	if s.Server == "" {
		if s, err = n.see(ctx, name, req); err != nil {
			return reply, false, present, n.unsent(err)
		}
		n.cache.read(name, s)
	}
	s.judgeBy(req)
	d, err := n.decide(s, req)
	waits := err == nil && refuses(d.reply.Status) && n.queue.joins(req)
	if waits {
		n.cache.crowd(name)
	}
	if waits && !n.queue.has(waiter{name, req.Value}) {
		if s, err = n.put(ctx, req); err == nil {
			s.judgeBy(req)
			d, err = n.decide(s, req)
		}
	}
	if err != nil {
		return d.reply, false, present, n.unsent(err)
	}
	if !n.startTimers(ctx, name, d.timers) {
		d = d.plain()
	}
	done, present = true, s
	if d.row != nil {
		done, present, err = n.swap(ctx, s, req, d, false)
	}
	if !done || err != nil {
		return d.reply, done, present, err
	}
	n.noteTrusted(ctx, s, req.Op, d.reply.Status)
	n.follow(ctx, req, &d, present)
	if d.row != nil {
		n.sweepSometimes(ctx, name, s)
	}
	if req.Op == node.OpYield && d.reply.Status == node.Reserved && n.queue.store != nil {
		if s, err := n.put(ctx, req); err == nil { // else it asks, and has it then
			d.reply.Rank = s.Rank
		}
	}
	return d.reply, true, present, nil
}

// see returns what is there for a request. One that leaves a place, or comes to a
// crowd, does that first.
func (n *Node) see(ctx context.Context, name string, req node.Request) (Snapshot, error) {
	w := waiter{name, req.Value}
	switch {
	case n.queue.joins(req) && (n.queue.has(w) || n.cache.crowded(name)):
		return n.put(ctx, req)
	case req.Op == node.OpRelease && n.queue.placed(w):
		return n.leave(ctx, n.queue.leaving(w))
	}
	return n.read(ctx, name)
}

// swap writes a row under a new version, and reports whether it did. present is what is
// there after that; it may be empty if nothing was written, or say nothing but the
// places if it was. If the store has to be prepared, nothing was written.
func (n *Node) swap(ctx context.Context, seen Snapshot, req node.Request, d decision, stamped bool) (done bool, present Snapshot, err error) {
	row := *d.row
	row.Version = crand.Text()
	by, acquires := n.prepared.Load(), n.queue.store != nil && (req.Op == node.OpAcquire || req.Op == node.OpRepair)
	look, near := d.looks()
	done, present, err = n.store.Swap(ctx, seen, Write{Row: row, Wakes: d.messages(row), Stamped: stamped, Drop: d.drop, Look: look, Near: near})
	err = n.failed(by, err)
	if acquires && err != nil && !errors.Is(err, node.ErrUnsent) {
		n.queue.doubt(req)
	}
	if !done && err == nil && present.Server != "" {
		present.Row.Name = row.Name
		if err = n.look(&present); err == nil {
			n.cache.read(row.Name, present)
		}
	}
	if done {
		if len(d.wakes) == 0 {
			n.queue.saw(row)
		}
		n.cache.wrote(row, present.Places, len(seen.Row.Timers) > 0 || len(d.timers) > 0)
		if seen.by != nil {
			if seen.recalled { // and it was right
				seen.recalled = false
				_, _ = seen.observed() // without the stamps of earlier rows
			}
			seen.by.wrote(row.Name, d.fresh)
			n.dropTimers(ctx, seen, row)
		}
	}
	return done, present, err
}

// failed explains the error of a write, after the store was prepared for the
// given time. If it must be prepared again, nothing was written, and that is no error.
func (n *Node) failed(by int64, err error) error {
	if errors.Is(err, ErrUnprepared) {
		n.prepared.CompareAndSwap(by, 0)
		return nil
	}
	return n.explain(err)
}

// pause waits before the next try: ever longer, and not all for the same time. A
// holder waits for less: in a crowd of waiters that all write, its release would
// otherwise come late, and all wait for it.
func pause(ctx context.Context, req node.Request, refused int) error {
	most := time.Millisecond / 2 << min(refused, 6)
	switch {
	case req.Op == node.OpRelease || req.Op == node.OpExtend || req.Op == node.OpRepair:
		most = 200 * time.Microsecond
	case req.Wait:
		most *= 4
	}
	t := time.NewTimer(rand.N(most) + most/8)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unsent makes err the error of a request that had no effect.
func (n *Node) unsent(err error) error {
	if errors.Is(err, node.ErrUnsent) {
		return n.explain(err)
	}
	return n.explain(fmt.Errorf("%w (%w)", err, node.ErrUnsent))
}

func (n *Node) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redlatch: %s: %w", n.store, err)
}
