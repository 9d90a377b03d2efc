package redlatch

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Once runs fn for one occurrence of a job, unless that occurrence is completed
// already: on this machine or another, now or earlier. name is the job's, and
// occurrence one of the times at which it is due, such as "2026-11-16". All
// callers of an occurrence must use the same text: round a time, and use one
// time zone. Of callers that come together, one runs fn under the lock; the
// others wait until it has ended, like Lock, and see what came of it.
//
// An occurrence is completed when fn has returned nil and a quorum of nodes has
// recorded it. Nodes keep the record for Options.CompletedRetention. If fn fails,
// panics, or loses the lock, the occurrence is not completed, and the next
// caller runs fn.
//
// A node that lost its data has no record, so its word does not count until the
// records of the name have been copied to it from others, which the next Once
// does. Once runs fn only if enough nodes have kept their records to be sure: of
// n nodes with a quorum of q, n-q+1, which is two of three. It waits for nodes
// that answer late. While too few of those nodes can be reached, it returns a
// *QuorumError and does not run fn.
//
// fn runs at least once, not exactly once: it may run again if this process
// crashes, or loses the lock, before its success is recorded; if too few nodes
// could record it; or if so many nodes have lost their data that the others are
// too few to be sure, even if all of them answer: the log then has a warning.
// Make fn harmless to repeat, or pass the lease's token to what it writes to.
//
// ran says that fn was called. Once returns fn's error. If fn returned nil, an
// error says that the lock was lost (ErrLost), or that its success could not be
// recorded on a quorum of nodes (a *QuorumError).
func (c *Client) Once(ctx context.Context, name, occurrence string, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) (ran bool, err error) {
	job, err := c.job(name, occurrence)
	if err != nil {
		return false, err
	}
	if set := optional.Value(opts); set.Shared || set.Slots != 0 {
		return false, &ConfigError{Field: "Shared", Value: fmt.Sprintf("%v with %d Slots", set.Shared, set.Slots), Bound: "left out, and Slots too: one caller runs an occurrence"}
	}
	state, err := job.handle(ctx, protocol.Try)
	switch state {
	case protocol.NeedsLock:
	case protocol.MayCopy:
		if lease, err := c.TryLock(ctx, name, nil); err == nil {
			_, _ = job.handle(ctx, protocol.Locked)
			_ = lease.Release(context.WithoutCancel(ctx)) // if it fails, the lock expires
		}
		return false, nil
	default:
		return false, err
	}
	err = c.Do(ctx, name, opts, func(ctx context.Context, l *Lease) error {
		if state, err := job.handle(ctx, protocol.Locked); err != nil || state != protocol.Runs {
			return err
		}
		if job.Found.Memory == protocol.Forgotten {
			c.opts.Logger.Warn("redlatch: so many nodes have lost their records that an occurrence may run again", "name", name, "occurrence", occurrence)
		}
		ran = true
		if err := fn(ctx, l); err != nil {
			return err
		}
		if l.Err() != nil {
			return nil // Do reports the loss; another may run it now
		}
		if _, err := job.handle(context.WithoutCancel(ctx), protocol.Ran); err != nil {
			return fmt.Errorf("redlatch: %q of %q ran, and may run again: %w", occurrence, name, err)
		}
		return nil
	})
	return ran, err
}

// Completed reports whether an occurrence of a job is completed, and since when a
// quorum of nodes has complete records of the job: an occurrence that was
// completed before that may be forgotten. since is zero if no quorum has any. The
// nodes' memory begins at the first call of Once or Completed for the name. If too
// few nodes answer to be sure, it returns a *QuorumError.
func (c *Client) Completed(ctx context.Context, name, occurrence string) (completed bool, since time.Time, err error) {
	job, err := c.job(name, occurrence)
	if err != nil {
		return false, time.Time{}, err
	}
	_, err = job.handle(ctx, protocol.Look)
	now := c.cluster.Clock().Now()
	return job.Found.Completed > 0, job.Since(now, now.Add(-c.opts.CompletedRetention)), err
}

// job returns an occurrence of a job, if name and occurrence are valid.
func (c *Client) job(name, occurrence string) (*job, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	if err := checkText("occurrence", occurrence, 1, node.MaxOccurrence); err != nil {
		return nil, err
	}
	if c.cluster.Closing() {
		return nil, ErrClosed
	}
	return &job{c: c, name: name, Job: protocol.Job{
		Nodes:   len(c.cluster.Members()),
		Request: node.RecordsRequest{Name: key, Occurrence: occurrence, Retention: c.opts.CompletedRetention},
	}}, nil
}
