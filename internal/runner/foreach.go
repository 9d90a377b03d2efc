package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/steptimeout"
)

// WalkLimit is how long a client waits for the next sign of progress of a node
// that scans its keys. The whole scan takes time in proportion to their number.
const WalkLimit = 5 * time.Second

// WithProgressTimeout calls f and waits for it while f reports progress at least once
// per limit. After an error do not read what f writes: f may still run, because
// not every driver returns when its context ends.
func WithProgressTimeout(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(limit, func() { cancel(ErrNodeTimeout) })
	defer stalled.Stop()
	done := make(chan error, 1)
	go func() { done <- f(steptimeout.With(ctx, func() { stalled.Reset(limit) })) }()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ForEachNode calls f for every node concurrently and waits for all of them, for at
// most limit if that is set. After that do not read what f writes: f may still
// run, because not every driver returns when its context ends.
func (c *Cluster) ForEachNode(ctx context.Context, limit time.Duration, f func(ctx context.Context, m *Member) error) []error {
	caller := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var mu sync.Mutex
	errs := make([]error, len(c.members))
	for i := range errs {
		errs[i] = ErrNodeTimeout
	}
	var all sync.WaitGroup
	for i, m := range c.members {
		all.Go(func() {
			err := f(ctx, m)
			if errors.Is(err, context.DeadlineExceeded) && caller.Err() == nil {
				err = ErrNodeTimeout // our own limit, not the caller's
			}
			mu.Lock()
			defer mu.Unlock()
			errs[i] = err
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		// Drivers that obey their context return about now.
		select {
		case <-done:
		case <-time.After(max(limit/10, 10*time.Millisecond)):
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(errs)
}
