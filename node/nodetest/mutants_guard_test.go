package nodetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// guardedNode is a server with a marker. A mutant changes its requests and replies.
type guardedNode struct {
	mu     sync.Mutex // guards the server
	server nodestate.Server
	clock  func() time.Time
	ask    func(req *node.Request)
	mark   func(req *node.MarkRequest)
	answer func(req node.Request, reply *node.Reply)
	// marked changes the replies to marks.
	marked func(reply *node.MarkReply)
}

func (n *guardedNode) Mark(_ context.Context, req node.MarkRequest) (node.MarkReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mark != nil {
		n.mark(&req)
	}
	reply := n.server.Mark(n.clock(), req)
	if n.marked != nil {
		n.marked(&reply)
	}
	return reply, nil
}

func (n *guardedNode) Do(_ context.Context, req node.Request) (node.Reply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := req
	if n.ask != nil {
		n.ask(&asked)
	}
	reply, _ := n.server.Apply(n.clock(), asked)
	if n.answer != nil {
		n.answer(req, &reply)
	}
	return reply, nil
}

func (n *guardedNode) String() string    { return "guarded" }
func (n *guardedNode) Close() error      { return nil }
func (n *guardedNode) GuardsAlone() bool { return true }

// without returns what drops the guard of some requests.
func without(ops ...node.Op) func(*node.Request) {
	return func(req *node.Request) {
		for _, op := range ops {
			if req.Op == op {
				req.Guard = nil
			}
		}
	}
}

// marking changes marks of one kind to another.
func marking(what, instead node.Mark) func(*node.MarkRequest) {
	return func(req *node.MarkRequest) {
		if req.Mark == what {
			req.Mark = instead
		}
	}
}

func TestEachBreakageOfTheMarkerIsSeen(t *testing.T) {
	off := func(req *node.Request) {
		if req.Guard != nil && req.Guard.Off && req.Op == node.OpAcquire {
			req.Guard = nil
		}
	}
	for name, m := range map[string]*guardedNode{
		"":                                     {},
		"acquires ignore it":                   {ask: without(node.OpAcquire)},
		"extensions ignore it":                 {ask: without(node.OpExtend)},
		"breaks ignore it":                     {ask: without(node.OpBreak)},
		"clients with the guard off ignore it": {ask: off},
		"it is trusted at once":                {mark: marking(node.MarkReplace, node.MarkFresh)},
		"it cannot be replaced":                {mark: marking(node.MarkReplace, node.MarkRead)},
		"it cannot be barred":                  {mark: marking(node.MarkBar, node.MarkRead)},
		"any membership writes it":             {mark: marking(node.MarkWrite, node.MarkReplace)},
		"its epoch is not compared":            {ask: func(req *node.Request) { req.Epoch = 0 }},
		"a grant does not show its epoch":      {answer: func(_ node.Request, r *node.Reply) { r.Epoch = 0 }},
		"its lineage is not written":           {mark: func(req *node.MarkRequest) { req.Lineage = "" }},
		"a grant does not show its lineage":    {answer: func(_ node.Request, r *node.Reply) { r.Lineage = "" }},
		"epochs are not noted":                 {mark: func(req *node.MarkRequest) { req.Epochs = "" }},
		"a grant does not name the server":     {answer: func(_ node.Request, r *node.Reply) { r.Server = "" }},
		"the quarantine does not end": {answer: func(req node.Request, r *node.Reply) {
			if req.Guard != nil && r.Status == node.Granted {
				r.Status = node.Quarantined
			}
		}},
		"its reply does not show it": {marked: func(r *node.MarkReply) { r.Guard = nil }},
	} {
		now := time.Now()
		m.server.ID, m.clock = "server", func() time.Time { return now }
		h := Harness{Guards: true, Advance: func(d time.Duration) { now = now.Add(d) }}
		if why := refute(h, guardClaims[0], m, m, nil); (why == "") != (name == "") {
			t.Errorf("%q: the claim says %q", name, why)
		}
	}
}
