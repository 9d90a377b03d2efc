package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/node"
)

// Starter is implemented by a Driver that needs no goroutine for a request in
// flight.
type Starter interface {
	Driver
	// Start runs a script like Eval, and returns before it is answered. It does
	// not block. done is called once, within limit or soon after, perhaps
	// before Start returns. It must not block, nor keep the reply, whose memory
	// is used again.
	//
	// Calls with the same first key and first argument are executed in the order
	// in which they were started. One that would have to be sent again behind a
	// later one fails with node.ErrUnsent.
	Start(call Call, limit time.Duration, done func(reply []string, err error))
}

// run is one request.
type run struct {
	node    *Node
	req     node.Request
	place   place
	marker  *expectation // nil if the request does not depend on one
	slotted bool         // the node was known for a part of a Cluster

	texts [maxTexts]string // the keys and arguments

	// For a request that was started. again says that it was sent again.
	again    bool
	limit    time.Duration
	done     func(node.Reply, error)
	answered func(parts []string, err error) // calls done
}

// prepare returns the script to run.
func (r *run) prepare() (Call, error) {
	n := r.node
	r.slotted = n.slotted.Load()
	if r.req.Guard != nil && needsMarker[r.req.Op] {
		r.marker = n.expect(&r.req)
	}
	call, err := r.call()
	if err != nil {
		err = fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	return call, err
}

// read returns the reply to the request.
func (r *run) read(parts []string, err error) (node.Reply, error) {
	switch {
	case err != nil:
		return node.Reply{}, explain(err)
	case len(parts) == 1:
		reply, err := asAsked(parts[0], &r.req, r.marker)
		r.node.own(&reply.Marker)
		return reply, err
	}
	reply, err := parseReply(parts, r.req.Share)
	if err != nil || r.marker == nil || reply.Status != node.Granted || reply.NeedsMark || parts[1] == "" {
		return reply, err
	}
	o, epochs, ok := cutOrigin(parts[1])
	if !ok {
		return node.Reply{}, fmt.Errorf("redlatch: unexpected reply %s: it does not name its server", shown(parts))
	}
	if o != r.marker.origin {
		r.node.learn(*r.marker, o)
	}
	reply.Marker = node.Marker{Server: o.server, Epoch: o.epoch, Lineage: o.lineage, Epochs: epochs}
	r.node.own(&reply.Marker)
	return reply, nil
}

// finish returns the reply to the request; again if the request has to be sent
// again.
func (r *run) finish(parts []string, err error) (reply node.Reply, again bool, _ error) {
	if err != nil && !r.slotted && r.req.Guard != nil && r.req.Guard.Off && crossesSlots(err) {
		r.node.slotted.Store(true)
		return node.Reply{}, true, nil
	}
	reply, err = r.read(parts, err)
	if err != nil {
		return node.Reply{}, false, err
	}
	reply.Wakes = reply.Rank > 0 && r.place.inbox != ""
	if r.req.Wait && !r.place.wait && r.req.Op == node.OpAcquire && reply.Status != node.Granted {
		r.node.inbox.open()
	}
	return reply, false, nil
}

// crossesSlots reports that a server is part of a Cluster, and a script asked for
// keys of several slots.
func crossesSlots(err error) bool {
	var server *ServerError
	return errors.As(err, &server) && server.Code == "CROSSSLOT"
}

// runs are those that were started, to be used again.
var runs sync.Pool

func init() {
	runs.New = func() any {
		r := new(run)
		r.answered = r.started
		return r
	}
}

// Starts reports whether the driver needs no goroutine for a request in flight.
func (n *Node) Starts() bool { return n.starter != nil }

// Lend makes the caller the one that reads the replies; nil if others do.
func (n *Node) Lend() callerreads.Loan {
	if n.lender == nil {
		return nil
	}
	return n.lender.Lend()
}

// Start executes a request like Do, and returns before it is answered.
func (n *Node) Start(req node.Request, limit time.Duration, done func(node.Reply, error)) {
	if n.starter == nil {
		go n.do(req, limit, done)
		return
	}
	r := runs.Get().(*run)
	r.node, r.req, r.limit, r.done = n, req, limit, done
	r.start()
}

// do executes a request, and waits for its answer.
func (n *Node) do(req node.Request, limit time.Duration, done func(node.Reply, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done(n.Do(ctx, req))
}

func (r *run) start() {
	r.place = r.node.inbox.place(&r.req)
	call, err := r.prepare()
	if err != nil {
		r.over(node.Reply{}, err)
		return
	}
	r.node.starter.Start(call, r.limit, r.answered)
}

// started handles the answer to a request that was started.
func (r *run) started(parts []string, err error) {
	reply, again, err := r.finish(parts, err)
	if again {
		r.again = true
		r.start()
		return
	}
	reply.Again = r.again
	r.over(reply, err)
}

// over passes on the reply.
func (r *run) over(reply node.Reply, err error) {
	done := r.done
	*r = run{answered: r.answered}
	runs.Put(r)
	done(reply, err)
}
