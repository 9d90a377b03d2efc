package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// answer is a node's answer to the request with that number.
type answer struct {
	node.Result
	seq uint32
}

// complete sets the fields of a request that no decision depends on. The mutex is
// held.
func (cl *Claim) complete(req *node.Request) {
	req.Name = cl.key
	req.Guard = cl.marker
	// A fence must outlive its lock, or the lock would be without a token.
	req.Retention = max(cl.c.cfg.FenceRetention, 4*req.Window, req.TTL+req.Window)
}

// do executes an effect that needs no mutex.
func (cl *Claim) do(a *Attempt, e *protocol.Effect, where place) {
	c := cl.c
	switch e.Kind {
	case protocol.Undo:
		c.undo(e.Node, e.Request)
	case protocol.UndoLater:
		c.undoLater(e.Node, e.Request)
	case protocol.CleanUp:
		m := c.members[e.Node]
		m.janitor.add(m, e.Request)
	case protocol.Adopt:
		cl.adopt(where)
	case protocol.AwaitMark:
		cl.awaitMark(a, where)
	case protocol.Mark:
		c.marking.start(c, cl.key)
	}
}

// batch is requests that are sent together, with one time limit, to nodes that
// need a goroutine for each.
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

// send sends all requests among the effects concurrently.
func (cl *Claim) send(a *Attempt, out []protocol.Effect, where place) {
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
	limit := cl.c.limit(node.Request{TTL: cl.core.TTL()})
	barge := a != nil && a.terms.Barge // an answer to the first may change the terms
	var b *batch
	for i := range out {
		if out[i].Kind != protocol.Send {
			continue
		}
		e := &out[i]
		e.Request.Barge = barge
		m := cl.c.members[e.Node]
		if !cl.c.background.start() {
			s := steps.Get().(*step)
			s.result = node.Result{Node: m.name, Err: fmt.Errorf("%w (%w)", node.ErrClosed, node.ErrUnsent)}
			cl.answered(s, e, where)
			continue
		}
		if m.starter != nil && m.identified.Load() {
			cl.start(m, e, limit)
			continue
		}
		if b == nil {
			b = new(batch)
			b.ctx, b.cancel = context.WithTimeout(cl.ctx, limit)
			b.left.Store(1) // for this function
		}
		b.left.Add(1)
		if where == onCaller && n == 1 {
			cl.ask(b, e, onCaller)
		} else {
			cl.c.workers.ask(cl, b, e)
		}
	}
	if b != nil {
		b.done()
	}
}

// ask sends one request, and handles the answer.
func (cl *Claim) ask(b *batch, e *protocol.Effect, where place) {
	m := cl.c.members[e.Node]
	s := steps.Get().(*step)
	s.result = m.Call(b.ctx, e.Request)
	if e.Probe {
		m.probes.Add(-1)
	}
	b.done()
	cl.answered(s, e, where)
	cl.c.background.end()
}

// answered handles the answer to a request, which is in s.
func (cl *Claim) answered(s *step, e *protocol.Effect, where place) {
	v, r := &s.event, &s.result
	v.Kind, v.Node, v.Seq, v.Op, v.Once, v.Token = protocol.Answer, e.Node, e.Seq, e.Request.Op, e.Request.Once, e.Request.Token
	v.Fault, v.Reply, v.Misfit = faultOf(r.Err), r.Reply, cl.misfit(e, r)
	s.asked = e
	cl.step(s, where)
}

// store keeps a node's answer, for the errors that a caller gets. The mutex is
// held.
func (cl *Claim) store(e *protocol.Effect, r *node.Result) {
	// Late answers to a lease are not reported, so they are not stored. Neither
	// are grants, as long as no other answer is.
	op := e.Request.Op
	granted := r.Err == nil && r.Reply.Status == node.Granted && cl.answers == nil
	if op == node.OpRepair || e.Request.Once || granted || op == node.OpAcquire && cl.core.State() >= protocol.Held {
		return
	}
	if cl.answers == nil {
		all := make([]answer, len(cl.c.members))
		cl.answers = &all
	}
	if a := &(*cl.answers)[e.Node]; a.seq <= e.Seq {
		*a = answer{*r, e.Seq}
	}
}

// misfit returns how the marker of a node that refused differs from ours.
func (cl *Claim) misfit(e *protocol.Effect, r *node.Result) protocol.Misfit {
	if r.Err != nil || r.Reply.Status != node.Misconfigured || e.Request.Guard == nil {
		return protocol.Fits
	}
	return protocol.Compare(*e.Request.Guard, r.Reply.Guard, e.Request.TTL)
}

// faultOf returns what an error means for its request.
func faultOf(err error) protocol.Fault {
	if err == nil {
		return protocol.NoFault
	}
	unsent, late := errors.Is(err, node.ErrUnsent), errors.Is(err, ErrNodeTimeout)
	var bad *node.ConfigError
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

// adopt takes the cluster parameters that the nodes reported, and continues the
// claim.
func (cl *Claim) adopt(where place) {
	cl.mu.Lock()
	// The caller may have left meanwhile.
	adapting := cl.core.State() == protocol.Adapting
	changed := adapting && cl.c.guard.adopt(cl.Results(), cl.marker)
	if changed {
		if cl.configure() != nil {
			cl.core.Reject(protocol.BadTTL)
		}
	}
	cl.mu.Unlock()
	cl.goOn(protocol.Configured, changed, where)
}

// goOn handles the result of an adoption or a marking.
func (cl *Claim) goOn(kind protocol.EventKind, changed bool, where place) {
	s := steps.Get().(*step)
	s.event.Kind, s.event.Changed = kind, changed
	cl.step(s, where)
}

// configure sets what depends on the cluster parameters.
func (cl *Claim) configure() error {
	cfg, marker, err := cl.attempt.configure()
	if err != nil {
		return err
	}
	cl.marker = marker
	cl.core.Configure(cfg)
	return nil
}

// awaitMark waits until the marking in flight is over, and continues the claim.
func (cl *Claim) awaitMark(a *Attempt, where place) {
	c := cl.c
	wait := func() {
		marked := c.marking.await(a.caller, int(a.marked.Load()), markTime*c.cfg.NodeTimeout)
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

// Results returns what each node answered in the last round, or why there is no
// answer. The mutex is held.
func (cl *Claim) Results() []node.Result {
	results := make([]node.Result, len(cl.c.members))
	for i, m := range cl.c.members {
		r := &results[i]
		r.Node = m.name
		said := node.Result{Node: m.name, Reply: node.Reply{Status: node.Granted}}
		if cl.answers != nil && (*cl.answers)[i].seq != 0 {
			said = (*cl.answers)[i].Result
		}
		switch cl.core.Outcome(i) {
		case protocol.Pending:
			r.Err = ErrPending
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

// sameServer returns the error for node i, which is the same server as another
// node.
func (cl *Claim) sameServer(i int) error {
	other := "another node"
	if j := cl.core.SameServer(i); j >= 0 {
		other = cl.c.members[j].name
	}
	return &node.ConfigError{Field: "nodes", Value: cl.c.members[i].name, Bound: "another server than " + other + ", which it is now"}
}
