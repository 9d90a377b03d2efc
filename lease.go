package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// A Lease is a lock that was acquired. It belongs to whoever has it, not to a
// goroutine, and is safe for use by many.
//
// Until its Deadline no other lease on the name is valid; the package comment
// says under which assumptions. Unless told otherwise the client extends it in
// the background until it is released, lost, or held for MaxHold.
type Lease struct {
	*claim
	opts     LockOptions
	acquired time.Duration
	ctx      context.Context
	cancel   context.CancelCauseFunc

	// The keeper's, under its mutex.
	deadline time.Duration // the lease ends then unless it is extended
	at       time.Time     // the same by the wall clock; once it has ended, when it did
	next     time.Duration // when the keeper looks at it again
	index    int           // in the keeper's heap; -1 if not there
	cause    error         // why it ended; nil while it stands
	failed   error         // of the last extension; nil if it was confirmed
	said     []answer      // what the nodes did about extensions, if that was logged
}

// newLease hands the claim over to a lease that stands until deadline, after a
// round that began at start.
func (c *Client) newLease(cl *claim, opts LockOptions, start, deadline time.Duration) (*Lease, error) {
	l := &Lease{claim: cl, opts: opts, acquired: c.clock.Uptime(), index: -1}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.moveDeadline(deadline)
	if err := c.keeper.add(l, start); err != nil {
		return nil, err
	}
	return l, nil
}

// holdUntil is when the lease ends even if it could be extended.
func (l *Lease) holdUntil() time.Duration { return l.acquired + l.opts.MaxHold }

// Name returns the name of the lock, without the client's prefix.
func (l *Lease) Name() string { return l.name }

// Token returns the fencing token. It stays the same for the life of the
// lease. It is 0 if the client was told to leave tokens out.
func (l *Lease) Token() Token { return l.req.Token }

// Owner returns the owner under which others see the lock: host/pid/label.
func (l *Lease) Owner() string {
	owner, _ := ownerOf(l.req.Value)
	return owner
}

// TTL returns the lock's time to live.
func (l *Lease) TTL() time.Duration { return l.req.TTL }

// Context returns a context that ends with the lease, at the deadline at the
// latest, whether or not any server can be reached. Its cause is ErrLost,
// ErrReleased or ErrDetached.
func (l *Lease) Context() context.Context { return l.ctx }

// Deadline returns when the lease ends unless it is extended before. It moves
// only when a quorum of nodes has confirmed an extension, and is the same
// instant at each call until then. Once the lease has ended, it is when it did.
//
// It is a time on this machine's wall clock, with a reading of Go's monotonic
// clock, which time.Until goes by. It does not follow a wall clock that is set,
// and a monotonic clock that stands still while the machine is suspended makes
// time.Until too long by as much. Remaining and Err heed a suspension.
func (l *Lease) Deadline() time.Time {
	k := &l.c.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	return l.at
}

// moveDeadline sets the deadline, but for MaxHold. The keeper's mutex is held,
// unless nobody else has the lease yet.
func (l *Lease) moveDeadline(to time.Duration) {
	l.deadline = min(to, l.holdUntil())
	l.at = l.c.clock.Now().Add(l.deadline - l.c.clock.Uptime())
}

// Remaining returns how long the lease stands yet unless it is extended. It is
// not positive once it has ended.
func (l *Lease) Remaining() time.Duration {
	k := &l.c.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	left := l.deadline - l.c.clock.Uptime()
	if l.cause != nil {
		left = min(left, 0)
	}
	return left
}

// Err returns nil while the lease stands, and why it ended after that.
func (l *Lease) Err() error {
	if l.Remaining() > 0 {
		return nil
	}
	// The deadline may have passed a moment before the keeper sees it.
	_, cause := l.c.keeper.end(l, ErrLost)
	return cause
}

// Extend gives the lock its whole time to live again, on a quorum of nodes. It
// returns ErrLost if the lock is no longer ours. With any other error the lease
// is as it was, valid until its deadline: a *QuorumError if too few nodes
// answered, the context's error if ctx ended, and ErrMaxHold if the deadline is
// at the lease's MaxHold already and cannot be moved any further.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return endedError(ctx, nil)
	}
	if err := l.atMaxHold(); err != nil {
		return err // asking would only have the keys outlive the lease
	}
	err := l.extend(ctx)
	if ctx.Err() != nil && errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrLost) {
		return endedError(ctx, err)
	}
	return err
}

// atMaxHold returns ErrMaxHold if the deadline is as late as it can be.
func (l *Lease) atMaxHold() error {
	k := &l.c.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.deadline < l.holdUntil() {
		return nil
	}
	return fmt.Errorf("%w of %v: %q cannot be extended, and is valid for another %v",
		ErrMaxHold, l.opts.MaxHold, l.name, (l.deadline - l.c.clock.Uptime()).Round(time.Millisecond))
}

func (l *Lease) extend(ctx context.Context) error {
	req := l.request(node.OpExtend)
	// What comes late waits here until it is known whether the round was won.
	var late struct {
		mu      sync.Mutex
		settled bool
		won     bool
		answers []event
	}
	rd := l.c.ask(ctx, l.name, req, 0, nil, func(at int, r NodeResult) {
		late.mu.Lock()
		defer late.mu.Unlock()
		if !late.settled {
			late.answers = append(late.answers, event{node: at, result: r})
		} else if late.won {
			l.repair(at, r)
		}
	})
	validity := validityOf(req.TTL, rd.elapsed)
	if rd.won() {
		for i, r := range rd.results {
			l.repair(i, r)
		}
	}
	late.mu.Lock()
	late.settled, late.won = true, rd.won()
	if late.won {
		for _, e := range late.answers {
			l.repair(e.node, e.result)
		}
	}
	late.mu.Unlock()
	switch {
	case rd.won() && validity > 0:
		return l.c.keeper.confirm(l, rd.start, rd.start+rd.elapsed+validity)
	case rd.lost():
		_, cause := l.c.keeper.end(l, l.lost(l.c.guard.refusal(&rd, req)))
		return cause
	}
	return l.c.keeper.failing(l, rd.quorumError(req))
}

// Release ends the lease and frees the lock on every node. It returns as soon
// as a quorum has confirmed; nodes that did not answer are asked again in the
// background until they do or the lock has run out there. A node that did not
// have the lock, because it missed the acquisition or forgot it, counts as one
// that freed it.
//
// Release returns ErrLost if the lock had been lost before, which is also the
// case if so few nodes still had it that they are no quorum; and a *QuorumError
// if too few nodes answered: the lock then runs out by itself, within its time
// to live. Releasing twice is harmless.
func (l *Lease) Release(ctx context.Context) error {
	if l.Remaining() <= 0 {
		l.c.keeper.end(l, ErrLost)
	}
	if first, cause := l.c.keeper.end(l, ErrReleased); !first {
		if errors.Is(cause, ErrReleased) {
			return nil
		}
		return cause
	}
	return l.free(ctx)
}

// free sends the release of a lease that has ended.
func (l *Lease) free(ctx context.Context) error {
	req := l.release()
	rd := l.c.ask(ctx, l.name, req, l.underway(), nil, func(at int, r NodeResult) {
		if r.Err != nil {
			m := l.c.members[at]
			m.janitor.add(m, req)
		}
	})
	for i, r := range rd.results {
		if r.Err != nil && !r.underway() {
			m := l.c.members[i]
			m.janitor.add(m, req)
		}
	}
	if l.heard {
		l.remember(true)
	}
	switch {
	case rd.freed():
		return nil
	case rd.lost():
		return l.lost(rd.quorumError(req))
	case ctx.Err() != nil:
		return endedError(ctx, nil)
	}
	return rd.quorumError(req)
}

// underway reports that the node's answer was not waited for and may still
// come.
func (r NodeResult) underway() bool { return r.Err == errPending || r.Err == ErrNodeTimeout }
