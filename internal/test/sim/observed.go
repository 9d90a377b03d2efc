package sim

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file has nodes without a clock. Each client has a casnode.Node of its own, which
// counts by the client's clock. What travels is not the request, but each read and each
// write of it: they are late and lost, and a client is paused between them.

// observe takes the clocks of nodes of a plan away: some, or all. It reports false for a plan
// that is about servers that forget, or about links that keep the order.
func (p *Plan) observe() bool {
	if p.Guard || p.InOrder || p.Behind || p.Climate != Within && p.Climate != Calm {
		return false
	}
	s := &stream{dice: dice(mix(p.Seed ^ 0x6f627376))}
	p.Observed = p.Nodes
	if p.Nodes > 1 && s.one(2) {
		p.Observed = 1 + s.intn(p.Nodes/2) // no quorum: they go by the clocks of the others
	}
	p.Placed = s.one(2)
	p.Road = min(p.Road, 4*time.Millisecond) // a request takes two rounds
	return true
}

// observedNode is a client's node over a link.
type observedNode struct {
	*casnode.Node
	l *link
}

func newObserved(l *link) observedNode {
	timed := clockless.Timed{Store: l.host.shelf.Open()}
	far := remote{timed, timed, l}
	store := casnode.Store(far)
	if l.w.plan.Placed {
		placed := clockless.Placed{Timed: timed}
		far.near = placed
		store = remotePlaces{far, placed}
	}
	return observedNode{casnode.New(store, &casnode.Options{Uptime: l.client.clock.Uptime}), l}
}

// Do notes whose value it is.
func (n observedNode) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	n.l.own(req.Value)
	reply, err := n.Node.Do(ctx, req)
	n.l.w.note("client %d -> %v: %v %.6s (%s) token %d: %v, place %d, %v", n.l.client.number, n, req.Op, req.Value,
		req.Share.Text(), uint64(req.Token)%1e9, reply.Status, reply.Rank, err)
	return reply, err
}

// remote is a store that is reached over a link.
type remote struct {
	clockless.Timed
	near casnode.Store // the same, perhaps with places
	l    *link
}

func (r remote) String() string { return r.l.String() }

func (r remote) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	return carry(ctx, r.l, node.OpInspect, func() (casnode.Snapshot, error) { return r.near.Read(context.Background(), name) })
}

func (r remote) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	type result struct {
		done    bool
		present casnode.Snapshot
	}
	a, err := carry(ctx, r.l, node.OpAcquire, func() (a result, err error) {
		a.done, a.present, err = r.near.Swap(context.Background(), seen, w)
		r.l.host.holders(w.Row.Name) // somebody counts who never fails
		return a, err
	})
	return a.done, a.present, err
}

func (r remote) Hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	l, w := r.l, r.l.w
	return r.Timed.Hear(ctx, process, ready, func(text string) {
		id := w.dice.roll(l.number(), uint64(w.now()), 77)
		if w.plan.Storm == 0 || w.now() >= w.plan.Mend || mix(id)%20 > 0 { // else it is lost
			w.after(w.trip(id)+l.client.pausedFor(w.now()), func() { heard(text) })
		}
	})
}

// remotePlaces is a remote that keeps the queues in places.
type remotePlaces struct {
	remote
	placed clockless.Placed
}

func (r remotePlaces) Put(ctx context.Context, p casnode.Place, again bool) (casnode.Snapshot, error) {
	return carry(ctx, r.l, node.OpAcquire, func() (casnode.Snapshot, error) { return r.placed.Put(context.Background(), p, again) })
}

func (r remotePlaces) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	return carry(ctx, r.l, node.OpRelease, func() (casnode.Snapshot, error) { return r.placed.Drop(context.Background(), p) })
}

func (r remotePlaces) Evict(ctx context.Context, name, process string) error {
	_, err := carry(ctx, r.l, node.OpBreak, func() (any, error) { return nil, r.placed.Evict(context.Background(), name, process) })
	return err
}

func (r remotePlaces) Live(ctx context.Context, process string) (bool, error) {
	return carry(ctx, r.l, node.OpExtend, func() (bool, error) { return r.placed.Live(context.Background(), process) })
}

func (r remotePlaces) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	return carry(ctx, r.l, node.OpInspect, func() ([]casnode.Place, error) { return r.placed.Places(context.Background(), name) })
}

// carry executes something on the server, and returns when the answer is back. It may be
// executed after that, twice, or not at all.
func carry[T any](ctx context.Context, l *link, op node.Op, execute func() (T, error)) (result T, err error) {
	a := l.await(ctx, l.send(node.Request{Op: op}, func() answer {
		r, err := execute()
		return answer{other: r, err: err}
	}))
	if a.err == nil {
		result, _ = a.other.(T)
	}
	return result, a.err
}
