// Package fresh brings servers that were just started into service, however
// busy the machine is. Client.Init reports a server that is slow to connect to;
// here it is asked again.
package fresh

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

const (
	// limit is how long servers that were started may take to be marked.
	limit = 3 * time.Minute
	// pause is how long it is waited between two tries.
	pause = 100 * time.Millisecond
)

// Declare marks the nodes of a client as new. It must only be called if they
// are.
func Declare(ctx context.Context, locks *redlatch.Client) error {
	return Try(ctx, func(ctx context.Context, opts admin.InitOptions) error {
		_, err := admin.New(locks).Init(ctx, opts)
		return err
	})
}

// Try calls mark, which marks nodes that are new, until it succeeds. A refusal
// is returned at once. Where an earlier try has marked some of the nodes, the
// others can no longer be declared new, and mark is asked to wait until they are
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
