package casnode

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Queued returns how many requests wait for a connection.
func (n *Node) Queued() int { return int(n.queued.Load()) }

// longestQueue is how long a release waits for its turn, in multiples of its own
// time limit.
const longestQueue = 20

// turn waits until a request may use the store, and returns the context that it
// has then. An error says that nothing was sent. It is not the turn of a waiter in a queue.
//
// A release may wait for longer than its time limit, which begins with its turn:
// a client that gives up a lock must not leave it behind because others do the same at
// the same time. Other requests end in time: their callers ask again.
func (n *Node) turn(ctx context.Context, op node.Op) (context.Context, context.CancelFunc, error) {
	if n.turns == nil {
		return ctx, func() {}, nil
	}
	select {
	case n.turns <- struct{}{}:
		return ctx, n.endTurn, nil
	default:
	}
	n.queued.Add(1)
	defer n.queued.Add(-1)
	wait, limit := ctx, time.Duration(0)
	if deadline, limited := ctx.Deadline(); limited && op == node.OpRelease {
		limit = time.Until(deadline)
		longer, cancel := withLimit(ctx, longestQueue*limit)
		defer cancel()
		wait = longer
	}
	select {
	case n.turns <- struct{}{}:
	case <-wait.Done():
		return nil, nil, fmt.Errorf("%w: all %d are (%w)", node.ErrBusy, cap(n.turns), node.ErrUnsent)
	}
	if limit == 0 {
		return ctx, n.endTurn, nil
	}
	own, cancel := withLimit(ctx, limit)
	return own, func() { cancel(); n.endTurn() }, nil
}

func (n *Node) endTurn() { <-n.turns }

// withLimit returns a context with a time limit in place of its own. It is
// cancelled with ctx.
func withLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		if ctx.Err() == context.Canceled {
			cancel()
		}
	})
	return limited, func() { stop(); cancel() }
}
