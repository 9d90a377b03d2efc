package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/optional"
)

// Leases are the locks of several names, held together. LockAll returns them.
type Leases struct {
	// All are the leases, sorted by name.
	All []*Lease

	ends   context.Context
	cancel context.CancelCauseFunc
}

// LockAll acquires the locks of all names, or none of them. It asks for one
// after the other, sorted by name, so callers that need some of the same names
// do not wait for each other in a circle, whatever the order in which they list
// them. A name that is listed twice is locked once.
//
// opts apply to every lock, and Wait to all of them together. While LockAll
// waits for one lock, the leases that it has already are extended. If one of
// them is lost, LockAll releases the others and returns the loss, which is
// ErrLost. Any other error is that of Lock.
//
// A caller that holds a lock and then calls LockAll can still wait in a circle:
// list all names in one call.
func (c *Client) LockAll(ctx context.Context, names []string, opts *LockOptions) (*Leases, error) {
	names, err := c.sorted(names)
	if err != nil {
		return nil, err
	}
	all := &Leases{}
	all.ends, all.cancel = context.WithCancelCause(context.Background())
	// A caller whose first lock is lost need not wait for the second.
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(all.ends, func() { stop(context.Cause(all.ends)) })()

	began := c.cluster.Clock().Uptime()
	for _, name := range names {
		l, err := c.lock(waiting, name, c.after(began, optional.Value(opts)))
		if err == nil {
			all.All = append(all.All, l)
			context.AfterFunc(l.Context(), func() { all.cancel(context.Cause(l.Context())) }) // its end is the end of all
			began += l.claim.Paused()
			continue
		}
		if lost := all.Err(); lost != nil {
			err = fmt.Errorf("redlatch: while waiting for %q: %w", name, lost)
		}
		if failed := all.Release(context.WithoutCancel(ctx)); failed != nil && !errors.Is(failed, ErrLost) {
			c.opts.Logger.Warn("redlatch: lock could not be released; it will expire after its TTL", "err", failed)
		}
		return nil, err
	}
	return all, nil
}

// sorted returns the names that are to be locked, each of them once, or an error
// for the first that is not valid.
func (c *Client) sorted(names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, &ConfigError{Field: "names", Value: "an empty list", Bound: "a list of one name or more"}
	}
	for i, name := range names {
		if _, err := c.key(name); err != nil {
			if bad, ok := err.(*ConfigError); ok && len(names) > 1 {
				bad.Field = fmt.Sprintf("names[%d]", i)
			}
			return nil, err
		}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// after returns the options for the next of several locks. The time that passed
// since began is taken off the wait, without that of quarantines.
func (c *Client) after(began time.Duration, opts LockOptions) LockOptions {
	if opts.Wait <= 0 {
		return opts
	}
	opts.Wait -= c.cluster.Clock().Uptime() - began
	if opts.Wait <= 0 {
		opts.Wait = NoWait
	}
	return opts
}

// Lease returns the lease of a name, or nil if it was not among the names.
func (all *Leases) Lease(name string) *Lease {
	for _, l := range all.All {
		if l.Name() == name {
			return l
		}
	}
	return nil
}

// Context returns a context that ends with the first of the leases, at its
// deadline at the latest. Its cause is that lease's.
func (all *Leases) Context() context.Context { return all.ends }

// Remaining returns how long all leases are valid unless they are extended. It
// is zero or negative after one has ended.
func (all *Leases) Remaining() time.Duration {
	least := all.All[0].Remaining()
	for _, l := range all.All[1:] {
		least = min(least, l.Remaining())
	}
	return least
}

// Err returns nil while all leases are valid, and after that why one ended: a
// loss, if any was lost.
func (all *Leases) Err() error {
	var first error
	for _, l := range all.All {
		err := l.Err()
		if errors.Is(err, ErrLost) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// Extend extends all leases concurrently. Its error is that of every lease that
// was not extended. See Lease.Extend.
func (all *Leases) Extend(ctx context.Context) error {
	return all.each(func(l *Lease) error { return l.Extend(ctx) })
}

// Release releases all leases concurrently. Its error is that of every lease
// that was lost before or could not be released. See Lease.Release.
func (all *Leases) Release(ctx context.Context) error {
	return all.each(func(l *Lease) error { return l.Release(ctx) })
}

// each calls f for all leases concurrently, and joins the errors.
func (all *Leases) each(f func(l *Lease) error) error {
	errs := make([]error, len(all.All))
	var wg sync.WaitGroup
	for i, l := range all.All {
		wg.Go(func() { errs[i] = f(l) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
