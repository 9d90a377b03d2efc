package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Once runs fn for one occurrence of a job, unless that occurrence is done
// already: on this machine or another, now or earlier. name is the job's, and
// occurrence one of the times at which it is due, such as "2026-11-16". All
// callers of an occurrence must use the same text: round a time, and use one
// time zone. Of callers that come together, one runs fn under the lock; the
// others wait until it has ended, like Lock, and see what came of it.
//
// An occurrence is done when fn has returned nil and a quorum of nodes has
// noted it. The note is a mark, which nodes keep for Options.MarkRetention. If
// fn fails, panics, or loses the lock, the occurrence is not done, and the next
// caller runs fn.
//
// fn runs at least once, not exactly once: it may run again if this process
// crashes, or loses the lock, before its success is noted; if too few nodes
// could note it; or if a quorum of nodes has lost its data since. Done says
// since when a quorum remembers. Make fn harmless to repeat, or pass the
// lease's token to what it writes to.
//
// ran says that fn was called. Once returns fn's error. If fn returned nil, an
// error says that the lock was lost (ErrLost), or that its success could not be
// noted on a quorum of nodes (a *QuorumError).
func (c *Client) Once(ctx context.Context, name, occurrence string, opts LockOptions, fn func(ctx context.Context, lease *Lease) error) (ran bool, err error) {
	key, err := c.occurrence(name, occurrence)
	if err != nil {
		return false, err
	}
	if opts.Shared || opts.Slots != 0 {
		return false, &ConfigError{Field: "Shared", Value: fmt.Sprintf("%v with %d Slots", opts.Shared, opts.Slots), Bound: "left out, and Slots too: one caller runs an occurrence"}
	}
	// Most callers find it done, and need no lock to see that. If too few nodes
	// answer, Lock waits for them.
	if done, err := c.recall(ctx, name, key, occurrence, someAnswer); done.marks > 0 {
		return false, err
	}
	err = c.Do(ctx, name, opts, func(ctx context.Context, l *Lease) error {
		done, err := c.recall(ctx, name, key, occurrence, someAnswer)
		if done.marks > 0 || err != nil {
			return err
		}
		ran = true
		if err := fn(ctx, l); err != nil {
			return err
		}
		if l.Err() != nil {
			return nil // Do reports the loss; another may run it now
		}
		if err := c.remember(context.WithoutCancel(ctx), name, key, occurrence); err != nil {
			return fmt.Errorf("redlatch: %q of %q ran, and may run again: %w", occurrence, name, err)
		}
		return nil
	})
	return ran, err
}

// Done reports whether an occurrence of a job is done, and since when a quorum
// of nodes remembers what is done: an occurrence that was done before that may
// be forgotten. since is zero if no quorum remembers anything of the job. The
// nodes begin to remember at the first call of Once or Done for the name.
func (c *Client) Done(ctx context.Context, name, occurrence string) (done bool, since time.Time, err error) {
	key, err := c.occurrence(name, occurrence)
	if err != nil {
		return false, time.Time{}, err
	}
	r, err := c.recall(ctx, name, key, occurrence, allAnswer)
	return r.marks > 0, r.since, err
}

// occurrence checks a name and an occurrence, and returns the key.
func (c *Client) occurrence(name, occurrence string) (string, error) {
	key, err := c.key(name)
	if err != nil {
		return "", err
	}
	if err := checkText("occurrence", occurrence, 1, node.MaxOccurrence); err != nil {
		return "", err
	}
	if c.cluster.Closing() {
		return "", ErrClosed
	}
	return key, nil
}

// recalled is what the nodes know about an occurrence.
type recalled struct {
	marks int       // how many nodes have a mark
	since time.Time // since when a quorum remembers
}

// recall asks a quorum of nodes for the mark of an occurrence. One mark is
// enough: the occurrence is done. If fewer than a quorum have it, recall has
// the others note it too, so that every later caller sees it. It returns an
// error if a quorum did not answer, or did not note it.
func (c *Client) recall(ctx context.Context, name, key, occurrence string, enough func([]NodeResult) bool) (r recalled, err error) {
	results, err := c.survey(ctx, name, c.markRequest(node.OpRecall, key, occurrence), enough)
	quorum := protocol.Quorum(len(results))
	var since []time.Time
	for _, n := range results {
		if n.Err == nil {
			since = append(since, n.Reply.Since)
			if n.Reply.Status == node.Granted {
				r.marks++
			}
		}
	}
	if len(since) >= quorum {
		slices.SortFunc(since, time.Time.Compare)
		r.since = since[quorum-1]
		if oldest := c.opts.Clock.Now().Add(-c.opts.MarkRetention); r.since.Before(oldest) {
			r.since = oldest
		}
	}
	if err == nil && r.marks > 0 && r.marks < quorum {
		err = c.remember(ctx, name, key, occurrence)
	}
	return r, err
}

// remember has a quorum of nodes note that an occurrence is done.
func (c *Client) remember(ctx context.Context, name, key, occurrence string) error {
	_, err := c.survey(ctx, name, c.markRequest(node.OpRemember, key, occurrence), someAnswer)
	return err
}

func (c *Client) markRequest(op node.Op, key, occurrence string) node.Request {
	return node.Request{Op: op, Name: key, Occurrence: occurrence, Retention: c.opts.MarkRetention}
}

// someAnswer reports whether a quorum of nodes has answered.
func someAnswer(results []NodeResult) bool {
	n := 0
	for _, r := range results {
		if r.Err == nil {
			n++
		}
	}
	return n >= protocol.Quorum(len(results))
}

// allAnswer waits for all nodes.
func allAnswer([]NodeResult) bool { return false }

// survey asks all nodes, and returns their answers when there are enough, or an
// error if a quorum did not answer.
func (c *Client) survey(ctx context.Context, name string, req node.Request, enough func([]NodeResult) bool) ([]NodeResult, error) {
	began := c.opts.Clock.Uptime()
	results := c.cluster.Survey(ctx, req, enough)
	if someAnswer(results) {
		return results, nil
	}
	err := error(&QuorumError{Op: req.Op, Name: name, Need: protocol.Quorum(len(results)), Elapsed: c.opts.Clock.Uptime() - began, Nodes: results})
	for _, r := range results {
		if errors.Is(r.Err, ErrConfig) {
			err = r.Err
		}
	}
	if ctx.Err() != nil {
		err = endedError(ctx, err)
	}
	return results, err
}
