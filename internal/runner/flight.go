package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// flight is one request of a claim to a node, until its answer is handled. It is
// sent by a node that needs no goroutine for it, or on a goroutine of its own.
type flight struct {
	cl      *Claim
	m       *Member
	message protocol.Message
	limit   time.Duration

	sent time.Time // when the node was asked, if it needs no goroutine
	// again says that it may be sent after a later request of the claim.
	again bool
	// release is that of an abandoned claim of ours that is in the way: it is
	// sent first.
	release  *node.Request
	answered func(node.Reply, error) // land, for a node that needs no goroutine
}

// flights are pooled.
var flights sync.Pool

func init() {
	flights.New = func() any {
		f := new(flight)
		f.answered = f.started
		return f
	}
}

// send sends requests concurrently. It returns one that the caller is to call, who stays:
// to wake another goroutine, and to be woken, costs as much as the request.
func (cl *Claim) send(a *Attempt, all []protocol.Message, where goroutine, stays bool) (own *flight) {
	limit := cl.c.limit(cl.core.TTL())
	if a != nil {
		marked, _ := cl.c.marking.count()
		a.marked.Store(int64(marked))
	}
	for i := range all {
		f := flights.Get().(*flight)
		f.cl, f.m, f.message, f.limit = cl, cl.c.members[all[i].Node], all[i], limit
		switch {
		case !f.begin():
			f.land(observe.Result{Node: f.m.name, Err: fmt.Errorf("%w (%w)", node.ErrClosed, node.ErrUnsent)}, where)
		case f.m.starter != nil && f.m.identified.Load():
			f.start()
		case stays && cl.c.prompt != nil && len(cl.c.members) == 1 && len(all) == 1 && f.m.identified.Load() && cl.c.prompt.Prompt():
			own = f
		default:
			f.again = f.m.starter != nil // one that is started may overtake it
			cl.c.callers.call(f)
		}
	}
	return own
}

// begin records that the request is sent. It returns false after Close.
func (f *flight) begin() bool {
	c, e := f.cl.c, &f.message
	if !c.background.start() {
		e.Probe = false
		return false
	}
	if e.Probe {
		f.m.probe()
	}
	if e.Request.Op == node.OpAcquire || e.Request.Reserve > 0 {
		c.tokens.sent(e.Request.Token + e.Request.Reserve)
	}
	return true
}

// start sends the request. Its answer is handled on a goroutine of the node.
func (f *flight) start() {
	f.m.begin()
	f.sent = f.cl.c.clock.Now()
	f.message.Request.Epoch = f.m.epoch.Load()
	f.m.starter.Start(f.message.Request, f.limit, f.answered)
}

// started handles the answer to start.
func (f *flight) started(reply node.Reply, err error) {
	c, m, req := f.cl.c, f.m, &f.message.Request
	now := c.clock.Now()
	if err == nil {
		m.showed(f.sent, now, reply.Now)
	}
	took := now.Sub(f.sent)
	r := m.end(req.Op, req.Name, reply, err, err != nil && took >= f.limit, false)
	m.observeEnd(req.Op, r, took)
	release, ours := c.abandoned.inTheWay(req.Op, reply, err)
	if !ours {
		f.landed(r, onClock)
		return
	}
	first := release // only here is it in the heap
	f.release = &first
	c.callers.call(f)
}

// callers are goroutines that wait for the next request to call. A new one costs
// more than the request: its stack grows while it calls a driver.
type callers struct {
	next   chan *flight  // has no room: somebody waits who takes it
	closed chan struct{} // nobody waits any more
}

// callerStays is how long a goroutine waits for the next request.
const callerStays = time.Second

// call calls a request on a goroutine other than the caller's, who may leave.
func (p *callers) call(f *flight) {
	select {
	case p.next <- f:
	default:
		go p.run(f)
	}
}

func (p *callers) run(f *flight) {
	f.call(context.Background(), nil)
	stay := time.NewTimer(callerStays)
	defer stay.Stop()
	for {
		select {
		case f = <-p.next:
		case <-stay.C:
			return
		case <-p.closed:
			return
		}
		f.call(context.Background(), nil)
		stay.Reset(callerStays)
	}
}

// call sends the request, waits for the answer, and handles it. If the caller itself does,
// and leaves or the client is closed, its attempt and then the request are cancelled.
func (f *flight) call(caller context.Context, a *Attempt) {
	f.cl.mu.Lock()
	ctx := f.cl.Context()
	f.cl.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	if a != nil {
		leaves := func() { a.cancel(); cancel() }
		defer context.AfterFunc(f.cl.c.background.open, leaves)()
		if caller.Done() != nil {
			defer context.AfterFunc(caller, leaves)()
		}
	}
	f.landed(f.m.call(ctx, f.message.Request, f.release), ours)
}

// landed handles the answer to a request that was sent.
func (f *flight) landed(r observe.Result, where goroutine) {
	c := f.cl.c
	if f.message.Probe {
		f.m.probeEnd()
	}
	f.land(r, where)
	c.background.end()
}

// land passes the answer to the claim.
func (f *flight) land(r observe.Result, where goroutine) {
	s := steps.Get().(*step)
	s.result, s.event.Again = r, f.again || r.Reply.Again
	f.cl.answered(s, &f.message, where)
	*f = flight{answered: f.answered}
	flights.Put(f)
}
