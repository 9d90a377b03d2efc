package casnode

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/redlatch/redlatch/node"
)

// Transactor is a store whose transactions exclude each other at no cost: the
// decision is made inside of one. No request has to begin again, however many
// contend for a name, and no version is compared: a row that is there has one, and
// any will do. There is no marker, and nobody is notified. It may be a Sweeper,
// whose Remove compares the states of rows in place of their versions.
type Transactor interface {
	Rows
	// Transact reads the row of the request's name, calls decide with it, and
	// writes the row that decide returns, if it returns one, in one transaction.
	// An error that wraps node.ErrUnsent promises that nothing was written. It
	// may let an urgent request go first.
	Transact(ctx context.Context, req node.Request, decide func(Snapshot) (*Row, error)) error
}

// NewTransacting returns a node over a Transactor. Waiters poll.
func NewTransacting(tx Transactor) *Node { return &Node{rows: tx, tx: tx} }

// transact executes a request in one transaction.
func (n *Node) transact(ctx context.Context, req node.Request) (reply node.Reply, err error) {
	if req.Op == node.OpMark {
		return reply, n.unsent(errors.New("a node of this kind forgets nothing, and has no marker"))
	}
	if req.Op == node.OpInspect || req.Op == node.OpAcquire && req.Wait {
		// Most requests of waiters change nothing, and readers block nobody. If
		// each of hundreds of waiters had to write whenever it asks, some would
		// wait for seconds.
		s, err := n.read(ctx, req.Name)
		if err != nil {
			return reply, n.unsent(err)
		}
		reply, next, _, err := n.decide(s, req)
		switch {
		case err != nil:
			return node.Reply{}, n.unsent(err)
		case next == nil:
			return reply, nil
		}
	}
	if err := n.prepare(ctx); err != nil {
		return reply, n.unsent(err)
	}
	var seen Snapshot
	wrote := false
	err = n.tx.Transact(ctx, req, func(s Snapshot) (next *Row, err error) {
		reply, next, _, err = n.decide(s, req)
		seen, wrote = s, next != nil
		return next, err
	})
	if err != nil {
		return node.Reply{}, n.explain(err)
	}
	if wrote && rand.N(sweepEvery) == 0 {
		_ = n.sweep(ctx, req.Name, seen)
	}
	return reply, nil
}

// Rebooted returns what is left of a row that was written before the machine
// booted: nil if it is nothing. The store raises its floor to the fence, as if it
// had removed the row.
func Rebooted(s Snapshot) (left *Row, fence node.Token) {
	e, err := s.Row.entry()
	if err != nil {
		return &Row{Name: s.Row.Name, State: s.Row.State}, 0 // it is damaged still
	}
	fence = e.Reboot()
	if e.Settle(s.Now); e.Dead() {
		return nil, fence
	}
	return s.next(s.Row.Name, &e, e.AppendTo(nil)), fence
}
