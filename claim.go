package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// claim carries out what a protocol.Claim asks for. It decides nothing.
type claim struct {
	c      *Client
	name   string // of the lock, as the caller gave it
	key    string // the same, prefix included
	marker *node.Guard
	ctx    context.Context // for the nodes: it has values, and never ends

	// mu guards what follows. The claims of one attempt share it: one takes over
	// from the other under it.
	mu      *sync.Mutex
	core    protocol.Claim
	answers *[]answer // the last of each node
	attempt *attempt  // whose it is; nil for one that was not asked for here
	lease   *Lease    // once it is won
	freed   chan struct{}
}

// answer is what a node answered to the request of that number.
type answer struct {
	NodeResult
	seq uint32
}

// place is on which goroutine an event is handled.
type place uint8

const (
	// elsewhere: requests are sent on goroutines of their own.
	elsewhere place = iota
	// onCaller: a single request is sent on this goroutine.
	onCaller
	// onClock: nothing that may take long is done on this goroutine.
	onClock
)

// step is what the handling of one event needs. Steps are used again: on the
// stack of a new goroutine they would have it grow.
type step struct {
	event protocol.Event
	view  view
	out   []protocol.Effect
}

var steps = sync.Pool{New: func() any { return &step{out: make([]protocol.Effect, 0, 8)} }}

// handle takes in an event, and does what follows from it.
func (cl *claim) handle(kind protocol.EventKind, where place) {
	s := steps.Get().(*step)
	s.event.Kind = kind
	cl.step(s, where)
}

// step handles the event of a step, and puts the step back.
func (cl *claim) step(s *step, where place) {
	cl.mu.Lock()
	a := cl.attempt
	s.view = view{cl.c, cl.c.clock.Uptime()}
	s.out = cl.core.Handle(&s.view, &s.event, s.out[:0])
	out := s.out
	next, tell := cl.note(out)
	goOn := protocol.Resume
	if next != nil && a.cancelled {
		goOn = protocol.Cancel
	}
	cl.mu.Unlock()
	cl.tell(tell, where)
	cl.send(a, out, where)
	for i := range out {
		cl.do(a, &out[i], where)
	}
	if next != nil {
		next.handle(goOn, where)
	}
	clear(out)
	s.event = protocol.Event{}
	steps.Put(s)
}

// note does what must be done under the mutex. It returns the successor of a
// claim that is replaced, and what is to be called when the mutex is free.
func (cl *claim) note(out []protocol.Effect) (next *claim, tell []func()) {
	c, a := cl.c, cl.attempt
	// A caller that waits is notified on its own goroutine, before it returns.
	report := func(f func()) {
		if a != nil {
			a.reports = append(a.reports, f)
			a.signal()
		} else {
			tell = append(tell, f)
		}
	}
	for i := range out {
		switch out[i].Kind {
		case protocol.RoundOver:
			if o, ok := c.opts.Observer.(RoundObserver); ok {
				end, ctx := cl.roundEnd(), cl.observed()
				report(func() { o.RoundEnd(ctx, end) })
			}
		case protocol.YieldOver:
			if o, ok := c.opts.Observer.(RoundObserver); ok {
				op, t := cl.core.Yield()
				end, ctx := RoundEnd{Op: op, Name: cl.name, Won: true, Granted: t.Granted, Refused: t.Refused}, cl.observed()
				report(func() { o.RoundEnd(ctx, end) })
			}
		case protocol.Waits:
			a.failure = cl.failure()
			if o, ok := c.opts.Observer.(WaitObserver); ok {
				ctx, w := cl.observed(), Waiting{Name: cl.name, Place: cl.core.Place(), Waited: c.clock.Uptime() - a.began, Err: a.failure}
				report(func() { o.Waiting(ctx, w) })
			}
			if a.line != nil {
				_, t := cl.core.Round()
				c.lines.note(a.line, !t.Available())
			}
		case protocol.Listen:
			if early := c.inbox.expect(cl); early != 0 {
				tell = append(tell, func() { cl.early(early) })
			}
		case protocol.Unlisten:
			c.inbox.forget(cl)
		case protocol.Won:
			cl.win()
			cl.attempt, cl.answers = nil, nil
		case protocol.Refused:
			a.failure = cl.failure()
			a.finish()
		case protocol.Replace:
			next = &claim{c: c, name: cl.name, key: cl.key, marker: cl.marker, ctx: cl.ctx, mu: cl.mu,
				core: cl.core.Successor(c.newValue()), answers: cl.answers, attempt: a}
			a.claim, cl.answers = next, nil
		case protocol.Extended:
			if f := cl.lease.extended(); f != nil {
				tell = append(tell, f)
			}
			if cl.lease.said != nil {
				tell = append(tell, cl.lease.relieve)
			}
		case protocol.NotExtended:
			tell = append(tell, cl.lease.notExtended())
		case protocol.Ended:
			if cl.lease != nil {
				if f := cl.lease.end(); f != nil {
					tell = append(tell, f)
				}
				if cl.lease.isNews() {
					tell = append(tell, cl.lease.tellEnd)
				}
			}
		case protocol.Freed:
			freed := cl.freed
			tell = append(tell, func() { close(freed) })
		}
	}
	switch {
	case cl.core.State() == protocol.Held:
		c.keeper.set(cl.lease, cl.core.Timer())
	case a != nil && a.claim == cl:
		a.moved(cl.core.Timer())
	}
	return next, tell
}

// tell reports to observers and logs, which may take their time.
func (cl *claim) tell(tell []func(), where place) {
	if len(tell) == 0 {
		return
	}
	all := func() {
		for _, f := range tell {
			f()
		}
	}
	if where != onClock || !cl.c.background.start() {
		all()
		return
	}
	go func() {
		defer cl.c.background.end()
		all()
	}()
}

// early delivers what nodes offered before the claim was known to the inbox.
func (cl *claim) early(nodes protocol.Set) {
	for i := range cl.c.members {
		if nodes.Has(i) {
			cl.woken(i, node.Wake{Kind: node.WakeTurn})
		}
	}
}

// woken hands in a notification.
func (cl *claim) woken(i int, wake node.Wake) {
	s := steps.Get().(*step)
	s.event.Kind, s.event.Node, s.event.Wake = protocol.Wake, i, wake
	cl.step(s, elsewhere)
}

// complete adds to a request what no decision depends on.
func (cl *claim) complete(req *node.Request) {
	req.Name = cl.key
	req.Guard = cl.marker
	// A fence that a lock outlives would leave it without a token.
	req.Retention = max(cl.c.opts.FenceRetention, 4*req.Window, req.TTL+req.Window)
}

// do carries out an effect that needs no mutex.
func (cl *claim) do(a *attempt, e *protocol.Effect, where place) {
	c := cl.c
	if e.Request.Op != 0 {
		cl.complete(&e.Request)
	}
	switch e.Kind {
	case protocol.Undo:
		c.undo(e.Node, e.Request)
	case protocol.UndoLater:
		c.undoLater(e.Node, e.Request)
	case protocol.CleanUp:
		m := c.members[e.Node]
		m.janitor.add(m, e.Request)
	case protocol.Leftover, protocol.LeftPlace:
		c.dropped.remember(c, e.Request, e.Kind == protocol.LeftPlace)
	case protocol.Adopt:
		cl.adopt(where)
	case protocol.AwaitMark:
		cl.awaitMark(a, where)
	case protocol.Mark:
		c.marking.start(c, cl.key)
	case protocol.Repaired:
		c.log.Info("redlatch: lock is back on a node that lacked it", "node", c.members[e.Node].name, "name", cl.name)
	}
}

// batch is requests that are sent together, with one time limit.
type batch struct {
	ctx    context.Context
	cancel context.CancelFunc
	left   atomic.Int32
}

func (b *batch) done() {
	if b.left.Add(-1) == 0 {
		b.cancel()
	}
}

// send sends the requests among the effects, all at once.
func (cl *claim) send(a *attempt, out []protocol.Effect, where place) {
	n := 0
	for i := range out {
		if out[i].Kind == protocol.Send {
			n++
		}
	}
	if n == 0 {
		return
	}
	if a != nil {
		marked, _ := cl.c.marking.count()
		a.marked.Store(int64(marked))
	}
	b := &batch{}
	b.left.Store(int32(n))
	for i := range out {
		if out[i].Kind != protocol.Send {
			continue
		}
		if b.ctx == nil {
			b.ctx, b.cancel = context.WithTimeout(cl.ctx, cl.c.limit(out[i].Request))
		}
		e := &out[i]
		cl.complete(&e.Request)
		e.Request.Barge = a != nil && a.opts.Barge
		switch {
		case !cl.c.background.start():
			b.done()
			cl.answered(e, &NodeResult{Node: cl.c.members[e.Node].name, Err: fmt.Errorf("%w (%w)", ErrClosed, ErrUnsent)}, where)
		case where == onCaller && n == 1:
			cl.ask(b, e, onCaller)
		default:
			copied := *e
			go cl.ask(b, &copied, elsewhere)
		}
	}
}

// ask sends one request, and hands in the answer.
func (cl *claim) ask(b *batch, e *protocol.Effect, where place) {
	m := cl.c.members[e.Node]
	r := m.call(b.ctx, e.Request)
	if e.Probe {
		m.probes.Add(-1)
	}
	b.done()
	cl.answered(e, &r, where)
	cl.c.background.end()
}

// answered hands in the answer to a request.
func (cl *claim) answered(e *protocol.Effect, r *NodeResult, where place) {
	op := e.Request.Op
	cl.mu.Lock()
	// What comes late to a lease is no answer to anything that is reported. That
	// a node granted is known without.
	granted := r.Err == nil && r.Reply.Status == node.Granted && cl.answers == nil
	if op != node.OpRepair && !e.Request.Once && !granted && (op != node.OpAcquire || cl.core.State() < protocol.Held) {
		if cl.answers == nil {
			all := make([]answer, len(cl.c.members))
			cl.answers = &all
		}
		if a := &(*cl.answers)[e.Node]; a.seq <= e.Seq {
			*a = answer{*r, e.Seq}
		}
	}
	cl.mu.Unlock()
	s := steps.Get().(*step)
	v := &s.event
	v.Kind, v.Node, v.Seq, v.Op, v.Once, v.Token = protocol.Answer, e.Node, e.Seq, op, e.Request.Once, e.Request.Token
	v.Fault, v.Reply, v.Misfit = faultOf(r.Err), r.Reply, cl.misfit(e, r)
	cl.step(s, where)
}

// misfit says in what the marker of a node that refused differs from ours.
func (cl *claim) misfit(e *protocol.Effect, r *NodeResult) protocol.Misfit {
	if r.Err != nil || r.Reply.Status != node.Misconfigured || e.Request.Guard == nil {
		return protocol.Fits
	}
	return protocol.Compare(*e.Request.Guard, r.Reply.Guard, e.Request.TTL)
}

// faultOf says what became of a request that had this error.
func faultOf(err error) protocol.Fault {
	if err == nil {
		return protocol.NoFault
	}
	unsent, late := errors.Is(err, ErrUnsent), errors.Is(err, ErrNodeTimeout)
	var bad *ConfigError
	switch {
	case unsent && errors.As(err, &bad):
		return protocol.Invalid
	case unsent && late:
		return protocol.TimedOutUnsent
	case unsent:
		return protocol.Unsent
	case late:
		return protocol.TimedOut
	}
	return protocol.Broken
}

// adopt takes over the cluster parameters that the nodes reported, and has the
// claim go on.
func (cl *claim) adopt(where place) {
	cl.mu.Lock()
	changed := cl.c.guard.adopt(cl.results(), cl.marker)
	if changed {
		if err := cl.configure(); err != nil {
			cl.attempt.bad = err
			cl.core.Reject(protocol.BadTTL)
		}
	}
	cl.mu.Unlock()
	cl.goOn(protocol.Configured, changed, where)
}

// goOn hands in what came of an adaption.
func (cl *claim) goOn(kind protocol.EventKind, changed bool, where place) {
	s := steps.Get().(*step)
	s.event.Kind, s.event.Changed = kind, changed
	cl.step(s, where)
}

// configure sets what depends on the cluster parameters.
func (cl *claim) configure() error {
	cfg, marker, err := cl.c.configure(cl.attempt)
	if err != nil {
		return err
	}
	cl.marker = marker
	cl.core.Configure(cfg)
	return nil
}

// awaitMark waits until the marking in flight is over, and has the claim go on.
func (cl *claim) awaitMark(a *attempt, where place) {
	c := cl.c
	wait := func() {
		marked := c.marking.await(a.caller, int(a.marked.Load()), markTime*c.opts.NodeTimeout)
		cl.goOn(protocol.Marked, marked, where)
	}
	if where == onCaller {
		wait()
		return
	}
	if !c.background.start() {
		cl.goOn(protocol.Marked, false, elsewhere)
		return
	}
	go func() {
		defer c.background.end()
		wait()
	}()
}

func (cl *claim) observed() context.Context {
	if cl.attempt != nil {
		return cl.attempt.observed
	}
	return cl.ctx
}

// results returns what each node said in the last round, or why it said nothing.
func (cl *claim) results() []NodeResult {
	results := make([]NodeResult, len(cl.c.members))
	for i, m := range cl.c.members {
		r := &results[i]
		r.Node = m.name
		said := NodeResult{Node: m.name, Reply: node.Reply{Status: node.Granted}}
		if cl.answers != nil && (*cl.answers)[i].seq != 0 {
			said = (*cl.answers)[i].NodeResult
		}
		switch cl.core.Outcome(i) {
		case protocol.Pending:
			r.Err = errPending
		case protocol.Skipped:
			r.Err = errSuspect
		case protocol.Late:
			r.Err = ErrNodeTimeout
			if errors.Is(said.Err, ErrNodeTimeout) {
				r.Err = said.Err
			}
		case protocol.Unusable:
			*r = said
			if said.Err == nil {
				r.Err = cl.sameServer(i)
			}
		default:
			*r = said
		}
	}
	return results
}

// sameServer says that node i is the same server as another.
func (cl *claim) sameServer(i int) error {
	other := "another node"
	if j := cl.core.SameServer(i); j >= 0 {
		other = cl.c.members[j].name
	}
	return &ConfigError{Field: "nodes", Value: cl.c.members[i].name, Bound: "another server than " + other + ", which it is now"}
}

// quorumError describes the last round, which found no quorum.
func (cl *claim) quorumError() *QuorumError {
	round, _ := cl.core.Round()
	return &QuorumError{
		Op: round.Op, Name: cl.key, Need: protocol.Quorum(len(cl.c.members)),
		Elapsed: round.Elapsed(), Late: round.Won, Nodes: cl.results(),
	}
}

// roundEnd describes the last round for an observer.
func (cl *claim) roundEnd() RoundEnd {
	round, t := cl.core.Round()
	end := RoundEnd{
		Op: round.Op, Name: cl.name, Won: t.Won() || round.Op == node.OpRelease && t.Freed(),
		Granted: t.Granted, Refused: t.Refused, Failed: t.Failed, Elapsed: round.Elapsed(),
	}
	if !end.Won {
		err := cl.quorumError()
		err.Name = cl.name
		end.Err = err
	}
	return end
}

// failure says why the last round gave no lease.
func (cl *claim) failure() error {
	switch cl.core.Verdict() {
	case protocol.NoVerdict:
		return nil
	case protocol.BadTTL:
		return cl.attempt.bad
	case protocol.NotOurs:
		return cl.lost(cl.quorumError())
	case protocol.HeldByAnother:
		return &HeldError{Name: cl.name, Holders: holdersOf(cl.results())}
	case protocol.Changing, protocol.Mismatch:
		if err := cl.c.guard.mismatch(cl.results(), cl.core.TTL()); err != nil {
			return err
		}
	case protocol.BadNode:
		for _, r := range cl.results() {
			var bad *ConfigError
			if errors.As(r.Err, &bad) {
				return r.Err
			}
		}
	}
	return cl.quorumError()
}
