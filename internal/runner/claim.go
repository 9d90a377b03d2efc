package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Claim runs a protocol.Claim: it passes events to it, and does what they make
// ready. The package comment has what the runner decides itself.
type Claim struct {
	c      *Cluster
	key    string
	marker *node.Guard // the cluster parameters that nodes compare with theirs

	// mu guards what follows. It is the own one of the first claim of an attempt:
	// they share it, because one replaces the other under it.
	own     sync.Mutex
	mu      *sync.Mutex
	core    protocol.Claim
	caller  context.Context // the caller's, for its values
	answers *[]answer       // the last answer of each node
	attempt *Attempt        // the attempt it belongs to; nil once it is won, or if it was not acquired here
	owner   Owner           // of a claim that is passed on: the lease that it is now
	freed   *parker         // is signalled at the end of the release; nil before the release

	relay *relay // nil unless the lease may be passed on

	// sending counts the steps whose requests are being sent. It goes up with the
	// mutex held.
	sending atomic.Int32

	index int32 // in the keeper's heap; -1 if it is not there; guarded by the keeper's mutex
}

// Owner is what a claim belongs to. It hears what becomes of it.
type Owner interface {
	// Name returns the name of the lock.
	Name() string
	// Notify is called, with the claim's mutex held, for all news but Freed. The
	// function that it returns, if any, is called without the mutex: on the caller's
	// goroutine before the caller returns, if there is a caller, and never on a
	// timer's goroutine.
	Notify(cl *Claim, what protocol.News) (later func())
}

// Lock locks the mutex under which the owner is notified.
func (cl *Claim) Lock() { cl.mu.Lock() }

// Unlock unlocks it.
func (cl *Claim) Unlock() { cl.mu.Unlock() }

// Core returns the state machine. Read it with the mutex held; its value and its
// TTL do not change.
func (cl *Claim) Core() *protocol.Claim { return &cl.core }

// Key returns the key of the lock.
func (cl *Claim) Key() string { return cl.key }

// Context returns the context for the nodes: it has the caller's values, and
// never ends. The mutex is held.
func (cl *Claim) Context() context.Context { return context.WithoutCancel(cl.caller) }

// Owner returns the owner. The mutex is held.
func (cl *Claim) Owner() Owner { return cl.owner }

// Own sets the owner. The mutex is held.
func (cl *Claim) Own(o Owner) { cl.owner = o }

// Remaining returns how long the claim is valid unless it is extended. It is
// zero or negative after the claim has ended. The mutex is held.
func (cl *Claim) Remaining() time.Duration {
	left := cl.core.Deadline() - cl.c.clock.Uptime()
	if cl.core.State().IsOver() {
		left = min(left, 0)
	}
	return left
}

// Paused returns how long the wait for the claim did not count.
func (cl *Claim) Paused() time.Duration {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.core.Paused()
}

// goroutine is the one on which an event is handled.
type goroutine uint8

const (
	// ours: a caller's, or one that was started for this.
	ours goroutine = iota
	// onClock: that of a timer or of a node. It does nothing that may block.
	onClock
)

// step is the memory for handling one event. Steps are pooled: on the stack of
// a new goroutine they would make the stack grow.
type step struct {
	event protocol.Event
	by    Owner // whose event it is, if it is one of the owner's
	view  view
	ready protocol.Ready

	// The request that an answer is for, nil for other events; and the answer.
	request *protocol.Message
	result  observe.Result

	reads *parker         // the caller reads the answers itself, if it can; else nil
	stays context.Context // of a caller that may call the node itself; else nil
}

var steps = sync.Pool{New: func() any {
	return &step{ready: protocol.Ready{News: make([]protocol.News, 0, 4), Send: make([]protocol.Message, 0, 8)}}
}}

// handle handles an event that has nothing but a kind.
func (cl *Claim) handle(kind protocol.EventKind, where goroutine) {
	s := steps.Get().(*step)
	s.event.Kind = kind
	cl.step(s, where)
}

// handleAndRead is handle for a caller that waits for the answers next, by p.read.
func (cl *Claim) handleAndRead(kind protocol.EventKind, ctx context.Context, p *parker) {
	s := steps.Get().(*step)
	s.event.Kind = kind
	if ctx.Err() == nil {
		s.reads = p
		// A release goes on if its caller leaves. So does a request whose caller has less
		// time than it: many end so in a crowd, each with a connection.
		if _, limited := ctx.Deadline(); ctx.Done() == nil || kind == protocol.Begin && !limited {
			s.stays = ctx
		}
	}
	cl.step(s, ours)
}

// step handles the event of a step, executes what follows in the order that
// protocol.Ready has, and returns the step to the pool.
func (cl *Claim) step(s *step, where goroutine) {
	cl.mu.Lock()
	if s.by != nil && s.by != cl.owner {
		cl.mu.Unlock() // the lease was passed on: it is another's now
		s.reuse()
		return
	}
	a, ready := cl.attempt, &s.ready
	if s.request != nil {
		cl.store(s.request, &s.result)
	}
	s.view = view{cl.c, cl.c.clock.Uptime(), cl.inOrder()}
	cl.core.Handle(&s.view, &s.event, ready)
	tell := cl.before(ready)
	next, resume := (*Claim)(nil), protocol.Resume
	if ready.Replaced {
		next = a.newClaim(cl.core.Successor(cl.c.newValue()))
		next.answers, cl.answers = cl.answers, nil
		if a.cancelled {
			resume = protocol.Cancel
		}
	}
	cl.arm(a)
	inLine := cl.relay != nil && ready.Line != protocol.LineNews{}
	if len(ready.Send) > 0 {
		cl.sending.Add(1)
	}
	cl.mu.Unlock()

	cl.tell(tell, where)
	var own *flight
	stays := s.stays
	if len(ready.Send) > 0 {
		if s.reads != nil {
			s.reads.borrow(cl.c)
		}
		own = cl.send(a, ready.Send, where, stays != nil)
		cl.sending.Add(-1)
	}
	cl.undo(ready.Undo)
	if ready.Adopt {
		cl.adopt(where)
	}
	if ready.AwaitMark {
		cl.awaitMark(a)
	}
	if inLine {
		cl.follow(ready.Line, false)
	}
	if next != nil {
		next.handle(resume, where)
	}
	s.reuse()
	if own != nil {
		own.call(stays, a)
	}
}

// reuse returns the step to the pool.
func (s *step) reuse() {
	s.event, s.by, s.request, s.result, s.reads, s.stays = protocol.Event{}, nil, nil, observe.Result{}, nil, nil
	steps.Put(s)
}

// inOrder returns the nodes that execute what is sent now after what the claim
// sent before. Another step may still be sending: its requests may come later. The
// mutex is held.
func (cl *Claim) inOrder() protocol.Set {
	if cl.sending.Load() > 0 {
		return 0
	}
	return cl.c.starts
}

// before does what comes before anybody else sees the claim. It returns what is
// called next, without the mutex.
func (cl *Claim) before(ready *protocol.Ready) (tell []func()) {
	c, a := cl.c, cl.attempt
	if ready.Listen {
		if early := c.inbox.expect(cl); early != 0 { // notifications that came before
			tell = append(tell, func() {
				for i := range c.members {
					if early.Has(i) {
						cl.woken(i, node.Wake{Kind: node.WakeTurn})
					}
				}
			})
		}
	}
	if ready.Unlisten {
		c.inbox.forget(cl)
	}
	for _, all := range [...][]protocol.Message{ready.Send, ready.Undo} {
		for i := range all {
			cl.complete(&all[i].Request)
		}
	}
	for _, l := range ready.Left {
		cl.complete(&l.Request)
		c.abandoned.note(c, l.Request, l.Released)
	}
	for _, what := range ready.News {
		switch what {
		case protocol.RoundOver, protocol.YieldOver, protocol.Waits:
			later := cl.owner.Notify(cl, what)
			switch {
			case later == nil:
			case a != nil: // a caller that waits reports on its own goroutine
				a.reports = append(a.reports, later)
				a.signal()
			default:
				tell = append(tell, later)
			}
			if what == protocol.Waits && a.queue != nil {
				_, t := cl.core.Round()
				c.queues.note(c, a.queue, t.Shortage())
			}
		case protocol.Won:
			cl.holdLine()
			cl.owner.Notify(cl, what)
			a.finish()
			cl.attempt, cl.answers = nil, nil
			c.guard.warn()
		case protocol.Refused:
			cl.owner.Notify(cl, what)
			a.finish()
		case protocol.Extended, protocol.NotExtended, protocol.Ended:
			if what == protocol.Ended {
				c.keeper.remove(cl)
			}
			if cl.relay != nil {
				cl.relay.signal()
			}
			if later := cl.owner.Notify(cl, what); later != nil {
				tell = append(tell, later)
			}
		case protocol.Freed:
			if freed := cl.freed.signal; len(tell) == 0 {
				freed <- struct{}{}
			} else {
				tell = append(tell, func() { freed <- struct{}{} })
			}
		}
	}
	if ready.Repaired != 0 {
		name, nodes := cl.owner.Name(), ready.Repaired
		tell = append(tell, func() {
			for i, m := range c.members {
				if nodes.Has(i) {
					c.log.Info("redlatch: lock is back on a node that lacked it", "node", m.name, "name", name)
				}
			}
		})
	}
	return tell
}

// arm sets the timer of the claim, which is a's until it is won.
func (cl *Claim) arm(a *Attempt) {
	switch {
	case cl.core.State().IsHeld():
		cl.c.keeper.set(cl, cl.core.Timer().Or(cl.core.Deadline()))
	case a != nil && a.claim == cl && cl.core.Timer().Before(a.armed):
		a.signal() // the caller's timer is to fire earlier
	}
}

// tell calls observers and loggers, which may be slow.
func (cl *Claim) tell(tell []func(), where goroutine) {
	if len(tell) == 0 {
		return
	}
	all := func() {
		for _, f := range tell {
			f()
		}
	}
	if where != onClock || !cl.c.background.run(all) {
		all()
	}
}

// woken handles a notification.
func (cl *Claim) woken(i int, wake node.Wake) {
	s := steps.Get().(*step)
	s.event.Kind, s.event.Node, s.event.Wake = protocol.Wake, i, wake
	cl.step(s, onClock) // it may be the goroutine of a node
}

// Handle handles an event of the owner that has nothing but a kind: a deadline
// that has passed, Extend, Downgrade, Detach or Bar. The owner is notified of its
// result. Nothing happens if the claim is another's by now.
func (cl *Claim) Handle(by Owner, kind protocol.EventKind) {
	s := steps.Get().(*step)
	s.event.Kind, s.by = kind, by
	cl.step(s, ours)
}
