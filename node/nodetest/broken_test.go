package nodetest

import (
	"context"
	"sync"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// A breakage answers in place of a node, mostly by sending it another request.
type breakage func(n *broken, ctx context.Context, req node.Request) (node.Reply, error)

// A misreading lists in place of a node.
type misreading func(n *broken, prefix string, found func(node.Listing))

// broken is a node in memory that is broken on purpose.
type broken struct {
	*memory.Node
	do   breakage
	list misreading

	mu   sync.Mutex // held during do
	shut bool
}

func (n *broken) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	if n.list == nil {
		return n.Node.List(ctx, prefix, found)
	}
	n.list(n, prefix, found)
	return nil
}

// listed lists as a healthy node does.
func (n *broken) listed(prefix string, found func(node.Listing)) {
	n.Node.List(context.Background(), prefix, found)
}

func (n *broken) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if n.do == nil {
		return n.Node.Do(ctx, req)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.do(n, ctx, req)
}

func (n *broken) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shut = true
	return nil
}

// ask asks the healthy node, even if the caller's context has ended.
func (n *broken) ask(req node.Request) node.Reply {
	reply, err := n.Node.Do(context.Background(), req)
	if err != nil {
		panic(err)
	}
	return reply
}

// evict frees the name, from all holders.
func (n *broken) evict(req node.Request) {
	n.ask(node.Request{Op: node.OpBreak, Name: req.Name})
}

// rewrite breaks a node by changing its requests.
func rewrite(change func(req *node.Request)) breakage {
	return func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
		change(&req)
		return n.Node.Do(ctx, req)
	}
}

// instead breaks a node by replacing one operation on exclusive locks.
func instead(op node.Op, f func(n *broken, req node.Request) node.Reply) breakage {
	return func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
		if req.Op != op || ctx.Err() != nil || req.Share != (node.Share{}) {
			return n.Node.Do(ctx, req)
		}
		return f(n, req), nil
	}
}

// keepsFences makes a node in memory behave like one that keeps fences.
func keepsFences(req *node.Request) {
	if req.Op <= node.OpBreak {
		req.Retention *= 1000
	}
}
