package runner

import (
	"errors"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// answer is a node's answer to the request with that number.
type answer struct {
	observe.Result
	seq uint32
}

// complete adds to a request what the claim does not know: the name, the marker to
// compare, and how long to keep the fence. The mutex is held.
func (cl *Claim) complete(req *node.Request) {
	req.Name = cl.key
	req.Guard = cl.marker
	req.Retention = protocol.FenceRetention(cl.c.cfg.FenceRetention, req.TTL, req.Window)
}

// undo sends releases in the background, and repeats them.
func (cl *Claim) undo(all []protocol.Message) {
	for i := range all {
		m := cl.c.members[all[i].Node]
		if all[i].Slow {
			m.janitor.add(m, all[i].Request)
		} else {
			cl.c.undo(all[i].Node, all[i].Request)
		}
	}
}

// answered handles the answer to a request. The answer, and whether it was sent
// again, are in s.
func (cl *Claim) answered(s *step, e *protocol.Message, where goroutine) {
	v, r := &s.event, &s.result
	v.Kind, v.Node, v.Seq, v.Op, v.Once, v.Token = protocol.Answer, e.Node, e.Seq, e.Request.Op, e.Request.Once, e.Request.Token
	v.Fault, v.Reply, v.Misfit = faultOf(r.Err), r.Reply, cl.misfit(e, r)
	s.request = e
	cl.step(s, where)
}

// store keeps a node's answer, for the errors that a caller gets. The mutex is
// held.
func (cl *Claim) store(e *protocol.Message, r *observe.Result) {
	// Late answers to a lease are not reported, so they are not stored. Neither
	// are grants, as long as no other answer is.
	op := e.Request.Op
	granted := r.Err == nil && r.Reply.Status == node.Granted && cl.answers == nil
	if op == node.OpRepair || e.Request.Once || granted || op == node.OpAcquire && !cl.core.State().Wants() {
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
func (cl *Claim) misfit(e *protocol.Message, r *observe.Result) protocol.Misfit {
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
	case unsent && errors.Is(err, node.ErrContended):
		return protocol.Contended
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
func (cl *Claim) adopt(where goroutine) {
	s := steps.Get().(*step)
	s.event.Kind = protocol.Configured
	cl.mu.Lock()
	// The caller may have left meanwhile.
	if cl.core.State() == protocol.Adopting && cl.c.guard.adopt(markersOf(cl.Results()), cl.marker) {
		a := cl.attempt
		if want, err := a.asker.Learned(cl.key, cl.c.guard.parameters()); err != nil {
			s.event.Kind = protocol.Rejected
		} else {
			a.setWant(want)
			s.event.Config, cl.marker = &a.want.Config, a.want.Parameters
		}
	}
	cl.mu.Unlock()
	cl.step(s, where)
}

// markersOf returns the markers of the nodes that refused because of them.
func markersOf(results []observe.Result) (theirs []node.Guard) {
	for _, r := range results {
		if r.Err == nil && r.Reply.Status == node.Misconfigured && r.Reply.Guard != nil {
			theirs = append(theirs, *r.Reply.Guard)
		}
	}
	return theirs
}

// marked continues the claim after a marking.
func (cl *Claim) marked(changed bool) {
	s := steps.Get().(*step)
	s.event.Kind, s.event.Changed = protocol.Marked, changed
	cl.step(s, ours)
}

// awaitMark waits until the marking in flight is over, and continues the claim.
func (cl *Claim) awaitMark(a *Attempt) {
	c := cl.c
	waits := c.background.run(func() {
		cl.marked(c.marking.await(a.caller, int(a.marked.Load()), markTime*c.cfg.NodeTimeout))
	})
	if !waits {
		cl.marked(false)
	}
}

// Results returns what each node answered in the last round, or why there is no
// answer. The mutex is held.
func (cl *Claim) Results() []observe.Result {
	results := make([]observe.Result, len(cl.c.members))
	for i, m := range cl.c.members {
		r := &results[i]
		r.Node = m.name
		said := observe.Result{Node: m.name, Reply: node.Reply{Status: node.Granted}}
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
			if *r = said; said.Err == nil {
				r.Reply = cl.core.Judged(i, said.Reply, cl.c.guard.parameters().Quarantine)
			}
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
	return &node.ConfigError{Field: "nodes", Value: cl.c.members[i].name, Bound: "another server than " + other,
		Problem: "duplicate server: " + cl.c.members[i].name + " is " + other + " now; list it once"}
}
