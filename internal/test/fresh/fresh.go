// Package fresh brings servers that were just started into service, on a busy
// machine too. Client.Init returns an error for a server that is slow to
// connect to; this package tries again.
package fresh

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

const (
	// limit is how long the marking of new servers may take.
	limit = 3 * time.Minute
	// pause is the delay between two tries.
	pause = 100 * time.Millisecond
)

// Declare marks the nodes of a client as new. Call it only if they are.
func Declare(ctx context.Context, locks *redlatch.Client) error {
	return Try(ctx, func(ctx context.Context, opts admin.InitOptions) error {
		_, err := admin.New(locks).Init(ctx, &opts)
		return err
	})
}

// Try calls mark, which marks new nodes, until it succeeds. It returns a
// refusal at once. If an earlier try has marked some of the nodes, the others
// cannot be declared new any more, and mark is asked to wait until all are
// trusted.
func Try(ctx context.Context, mark func(context.Context, admin.InitOptions) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	opts := admin.InitOptions{AssumeFresh: true}
	for tries := 1; ; tries++ {
		err := mark(ctx, opts)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, admin.ErrNotFresh) && tries > 1:
			opts = admin.InitOptions{Wait: true}
		case errors.Is(err, redlatch.ErrConfig), errors.Is(err, admin.ErrNotFresh):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
