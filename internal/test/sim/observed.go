package sim

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// This file has nodes without a clock. Each client has a casnode.Node of its own, which
// counts by the client's clock. What travels is not the request, but each read and each
// write of it: they are late and lost, and a client is paused between them.

// observe has nodes of a plan have no clock: some, or all. It reports false for a plan
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
	p.Road = min(p.Road, 4*time.Millisecond) // a request takes two rounds
	return true
}

// observedNode is a client's node over a link.
type observedNode struct {
	*casnode.Node
	l *link
}

func newObserved(l *link) observedNode {
	store := remote{clockless.Timed{Store: l.host.shelf.Open()}, l}
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
	l *link
}

func (r remote) String() string { return r.l.String() }

func (r remote) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	return carry(ctx, r.l, node.OpInspect, func() (casnode.Snapshot, error) { return r.Timed.Read(context.Background(), name) })
}

func (r remote) Swap(ctx context.Context, seen casnode.Snapshot, row casnode.Row, wakes []string) (bool, error) {
	return carry(ctx, r.l, node.OpAcquire, func() (bool, error) {
		done, err := r.Timed.Swap(context.Background(), seen, row, wakes)
		r.l.host.holders(row.Name) // somebody counts who never fails
		return done, err
	})
}

func (r remote) Hear(ctx context.Context, ready func(), heard func(string)) error {
	l, w := r.l, r.l.w
	return r.Timed.Hear(ctx, ready, func(text string) {
		id := w.dice.roll(l.number(), uint64(w.now()), 77)
		if w.plan.Storm == 0 || w.now() >= w.plan.Mend || mix(id)%20 > 0 { // else it is lost
			w.after(w.trip(id)+l.client.pausedFor(w.now()), func() { heard(text) })
		}
	})
}

// carry has the server execute something, and returns when the answer is back. It may be
// executed after that, or not at all.
func carry[T any](ctx context.Context, l *link, op node.Op, execute func() (T, error)) (result T, err error) {
	w, now := l.w, l.w.now()
	results := make(chan T, 1)
	m := &message{fate: l.fateOf(&node.Request{Op: op}, now), done: make(chan answer, 1)}
	w.mu.Lock()
	gone := now < l.gone
	m.cut = l.cut
	w.mu.Unlock()
	if m.harm == brokenOff {
		w.after(m.back, func() { answerWith(m.done, answer{err: errReset}) })
	}
	var arrive func()
	arrive = func() {
		now := w.now()
		w.mu.Lock()
		frozen, down, deaf := l.host.frozen-now, now < l.host.down, now < l.deaf
		w.mu.Unlock()
		switch {
		case down:
			w.after(m.back, func() { answerWith(m.done, answer{err: errReset}) })
			return
		case frozen > 0:
			w.after(frozen+w.jitter(m.id^6), arrive)
			return
		}
		r, err := execute()
		results <- r
		if m.harm != replyLost && !deaf {
			w.after(m.back, func() { l.back(answer{err: err}, m) })
		}
	}
	if m.harm != requestLost && m.harm != neverSent && !gone {
		w.after(m.out+l.client.pausedFor(now), arrive)
	}
	if _, err = l.await(ctx, m); err == nil {
		result = <-results
	}
	return result, err
}
