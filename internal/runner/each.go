package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/progress"
)

// WalkLimit is how long a node that walks through its keys is waited for, from one
// sign of progress to the next: the whole takes as long as there are keys.
const WalkLimit = 5 * time.Second

// WhileItGoesOn calls f and waits for it for as long as it reports progress at
// least once per limit. What f does after an error must not be looked at: not
// every driver returns when its context ends.
func WhileItGoesOn(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(limit, func() { cancel(ErrNodeTimeout) })
	defer stalled.Stop()
	done := make(chan error, 1)
	go func() { done <- f(progress.With(ctx, func() { stalled.Reset(limit) })) }()
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

// Each calls f for every node at once and waits for all of them, no longer than
// limit, if there is one: not every driver returns when its context ends. What f
// does after that must not be looked at.
func (c *Cluster) Each(ctx context.Context, limit time.Duration, f func(ctx context.Context, m *Member) error) []error {
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
		// Those who heed their context return about now.
		select {
		case <-done:
		case <-time.After(max(limit/10, 10*time.Millisecond)):
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(errs)
}
