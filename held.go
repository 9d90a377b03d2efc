package redlatch

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/node"
)

// held is a chain, kept in contexts, of the leases that Do holds around a
// function.
type held struct {
	lease *Lease
	outer *held
}

type heldKey struct{}

// heldOn returns the lease on the key that Do already holds for this context: a
// caller that waited for it would wait for itself. It is nil for none.
func heldOn(ctx context.Context, c *Client, key string) *Lease {
	h, _ := ctx.Value(heldKey{}).(*held)
	for ; h != nil; h = h.outer {
		if h.lease.c == c && h.lease.claim.Key() == key && h.lease.Remaining() > 0 {
			return h.lease
		}
	}
	return nil
}

// deadlock is the error of a caller that would wait for its own lease.
func deadlock(name string, own *Lease, opts LockOptions) error {
	if own.share().Mode == node.Shared && !opts.Shared {
		return fmt.Errorf("%w: %q: a reader cannot become a writer, because two readers that both wanted that would wait for each other; "+
			"release the lock and read again under a writer's, or begin as a writer and call Downgrade", ErrDeadlock, name)
	}
	return fmt.Errorf("%w: %q", ErrDeadlock, name)
}
