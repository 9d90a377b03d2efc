package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// Ordered is a link to a node that executes requests in the order in which they
// were started.
type Ordered struct {
	*Link
	last chan struct{} // closed when the last request was executed
}

// NewOrdered returns n links to nodes that execute in order.
func NewOrdered(t testing.TB, n int) ([]*Ordered, []redlatch.Node) {
	links, nodes := NewLinks(t, n)
	ordered := make([]*Ordered, n)
	for i, l := range links {
		ordered[i] = &Ordered{Link: l}
		nodes[i] = ordered[i]
	}
	return ordered, nodes
}

// Starts reports that a client should call Start.
func (o *Ordered) Starts() bool { return true }

// Start sends a request.
func (o *Ordered) Start(req node.Request, limit time.Duration, done func(node.Reply, error)) {
	o.mu.Lock()
	hook := o.Hook
	o.mu.Unlock()
	if hook != nil {
		hook(req)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests[req.Op]++
	out, back := o.Out+o.Lag[req.Op], o.Back
	before, executed := o.last, make(chan struct{})
	o.last = executed
	o.underway.Add(1)
	go func() {
		defer o.underway.Add(-1)
		time.Sleep(out)
		if before != nil {
			<-before
		}
		reply, err := o.Node.Do(context.Background(), req)
		close(executed)
		time.Sleep(back)
		done(reply, err)
	}()
}
