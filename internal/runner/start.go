package runner

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// flight is a request to a node that needs no goroutine for it.
type flight struct {
	cl       *Claim
	m        *Member
	effect   protocol.Effect
	sent     time.Time
	limit    time.Duration
	answered func(node.Reply, error)
}

// flights are pooled.
var flights sync.Pool

func init() {
	flights.New = func() any {
		f := new(flight)
		f.answered = f.landed
		return f
	}
}

// start sends one request. Its answer is handled on a goroutine of the node.
func (cl *Claim) start(m *Member, e *protocol.Effect, limit time.Duration) {
	f := flights.Get().(*flight)
	f.cl, f.m, f.effect, f.limit = cl, m, *e, limit
	m.begin()
	f.sent = cl.c.clock.Now()
	m.starter.Start(f.effect.Request, limit, f.answered)
}

// landed handles the answer.
func (f *flight) landed(reply node.Reply, err error) {
	cl, m, req := f.cl, f.m, &f.effect.Request
	if err == nil {
		m.showed(f.sent, reply.Now)
	}
	s := steps.Get().(*step)
	s.result = m.end(req.Op, req.Name, reply, err, err != nil && cl.c.clock.Now().Sub(f.sent) >= f.limit)
	if observe := cl.c.cfg.NodeEnd; observe != nil {
		observe(m, req.Op, reply.Status, s.result.Err, cl.c.clock.Now().Sub(f.sent))
	}
	if err == nil && reply.Status == node.Held && req.Op == node.OpAcquire {
		if _, ours := cl.c.dropped.key(reply.Value); ours {
			// The node has not executed the release of a claim that we gave up.
			// Asked again on another goroutine, it executes that first.
			b := new(batch)
			b.ctx, b.cancel = context.WithTimeout(cl.ctx, f.limit)
			b.left.Store(1)
			cl.c.workers.ask(cl, b, &f.effect)
			f.free()
			steps.Put(s)
			return
		}
	}
	if f.effect.Probe {
		m.probes.Add(-1)
	}
	cl.answered(s, &f.effect, onClock)
	f.free()
	cl.c.background.end()
}

func (f *flight) free() {
	*f = flight{answered: f.answered}
	flights.Put(f)
}
