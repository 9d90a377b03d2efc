package runner

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Inspect asks all nodes who has the key, until enough reports true: see survey.
func (c *Cluster) Inspect(ctx context.Context, key string, enough func() bool) []observe.Result {
	req := node.Request{Op: node.OpInspect, Name: key}
	call := func(ctx context.Context, i int) observe.Result { return c.members[i].Call(ctx, req) }
	return c.survey(ctx, len(c.members), func(i int) int { return i }, call, func(int) bool { return enough() })
}

// Records sends requests about records, until enough reports true for an answer, which
// is nil if the node failed: see survey.
func (c *Cluster) Records(ctx context.Context, asks []protocol.Ask, enough func(protocol.Ask, *node.RecordsReply) bool) []observe.Result {
	replies := make([]*node.RecordsReply, len(asks))
	return c.survey(ctx, len(asks), func(k int) int { return asks[k].Node }, func(ctx context.Context, k int) observe.Result {
		reply, r := c.members[asks[k].Node].records(ctx, asks[k].Request)
		if r.Err == nil {
			replies[k] = &reply
		}
		return r
	}, func(k int) bool { return enough(asks[k], replies[k]) })
}

// survey asks n nodes what is no part of a claim, all at once. It returns the answer of
// each node when enough reports true for one, when all have answered, or when ctx or the
// node time limit ends. A node that has not answered has ErrNodeTimeout. The other
// requests go on in the background.
func (c *Cluster) survey(ctx context.Context, n int, at func(k int) int, call func(ctx context.Context, k int) observe.Result, enough func(k int) bool) []observe.Result {
	type answer struct {
		k      int
		result observe.Result
	}
	results := make([]observe.Result, len(c.members))
	for i, m := range c.members {
		results[i] = observe.Result{Node: m.name, Err: ErrNodeTimeout}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.NodeTimeout)
	_ = context.AfterFunc(limited, cancel) // at the latest
	answers := make(chan answer, n)
	for k := range n {
		c.Go(func() { answers <- answer{k, call(limited, k)} })
	}
	for left := n - 1; left >= 0; left-- {
		select {
		case a := <-answers:
			results[at(a.k)] = a.result
			if enough(a.k) && left > 0 {
				return results
			}
		case <-ctx.Done():
			return results
		case <-limited.Done(): // drivers that do not return when their context ends
			return results
		}
	}
	cancel()
	return results
}

// records asks the node about records, and records what the answer shows about it.
func (m *Member) records(ctx context.Context, req node.RecordsRequest) (reply node.RecordsReply, r observe.Result) {
	m.begin()
	sent, err := m.cluster.clock.Uptime(), m.identify(ctx)
	asked := m.cluster.clock.Now()
	if n, ok := m.node.(node.Recorder); !ok {
		err = fmt.Errorf("redlatch: %s keeps no records (%w)", m.name, node.ErrUnsent)
	} else if err == nil {
		reply, err = n.Records(ctx, req)
	}
	if err == nil {
		m.answered(asked, reply.Now, reply.Clockless)
	}
	r = m.end(req.Op, req.Name, node.Reply{Status: reply.Status, Now: reply.Now}, err, ctx.Err() != nil, false)
	m.observeEnd(req.Op, r, m.cluster.clock.Uptime()-sent)
	return reply, r
}
