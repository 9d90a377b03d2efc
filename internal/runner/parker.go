package runner

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/internal/protocol"
)

// parker is what a caller waits on: a signal and a timer. A client uses its
// parkers again.
type parker struct {
	signal chan struct{} // has room for one
	timer  *time.Timer
	loan   callerreads.Loan // the connection that the caller reads; nil if others do
}

func (c *Cluster) newParker() *parker {
	if p, ok := c.parkers.Get().(*parker); ok {
		return p
	}
	p := &parker{signal: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	p.timer.Stop()
	return p
}

// reuse keeps a parker that nobody will signal any more.
func (c *Cluster) reuse(p *parker) {
	p.timer.Stop()
	p.drain()
	c.parkers.Put(p)
}

// drain removes the signal, if there is one.
func (p *parker) drain() {
	select {
	case <-p.signal:
	default:
	}
}

// borrow lends the caller the only node's connection, to read the answers by itself, if
// nobody else needs them. When the request is sent, read must follow at once: others may wait for
// what is read, so nothing that may block comes between.
func (p *parker) borrow(c *Cluster) {
	if c.lender != nil && c.members[0].identified.Load() {
		p.loan = c.lender.Lend()
	}
}

// read reads the answers, if the caller borrowed the connection, until the caller is
// signalled. That takes about a millisecond at most: then others read, and the
// caller waits for them. at is when its timer fires.
func (p *parker) read(ctx context.Context, c *Cluster, at protocol.When) {
	if p.loan == nil {
		return
	}
	limit := time.Second
	if at, ok := at.Get(); ok {
		limit = at - c.clock.Uptime()
	}
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	p.loan(p.signal, limit)
	p.loan = nil
}
