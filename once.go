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
	// Most callers find it completed, and need no lock to see that. If too few
	// nodes answer, Lock waits for them.
	if found, err := job.check(ctx); found.completed() {
		if found.partial() {
			job.copyUnderLock(ctx)
		}
		return false, err
	}
	err = c.Do(ctx, name, opts, func(ctx context.Context, l *Lease) error {
		found, err := job.check(ctx)
		if err != nil {
			return err
		}
		if err := job.copy(ctx, found); found.completed() || err != nil {
			return err
		}
		switch found.Memory {
		case protocol.Unsure:
			return job.unknown(found)
		case protocol.Forgotten:
			c.opts.Logger.Warn("redlatch: so many nodes have lost their records that an occurrence may run again", "name", name, "occurrence", occurrence)
		}
		ran = true
		if err := fn(ctx, l); err != nil {
			return err
		}
		if l.Err() != nil {
			return nil // Do reports the loss; another may run it now
		}
		if err := job.complete(context.WithoutCancel(ctx)); err != nil {
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
	found, err := job.check(ctx)
	if err == nil && !found.completed() && found.Memory == protocol.Unsure {
		err = job.unknown(found)
	}
	return found.completed(), found.since(c.cluster.Clock().Now().Add(-c.opts.CompletedRetention)), err
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
	return &job{c, name, key, occurrence, c.opts.CompletedRetention}, nil
}
