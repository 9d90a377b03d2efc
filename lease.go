package redlatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// A Lease is a lock that was acquired. It belongs to whoever has it, not to a
// goroutine, and is safe for use by many.
//
// Until its Deadline no other lease on the name is valid; the package comment
// says under which assumptions. Unless told otherwise the client extends it in
// the background until it is released, lost, or held for MaxHold.
type Lease struct {
	*claim
	opts   LockOptions
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Under the claim's mutex.
	at        time.Time  // the deadline by the wall clock; once it has ended, when it did
	cause     error      // why it ended; nil while it is held
	failed    error      // of the last extension; nil if it was confirmed
	said      []said     // what the nodes did about extensions, if that was logged
	extension *extension // what callers of Extend wait for; nil if none do
	soon      bool       // the client is closing

	// The keeper's, under its mutex.
	next  time.Duration // when the keeper looks at it again
	index int           // in the keeper's heap; -1 if not there
}

// extension is a request for more time that callers wait for.
type extension struct {
	done chan struct{}
	err  error
}

// win makes the claim a lease. The mutex is held.
func (cl *claim) win() {
	l := &Lease{claim: cl, index: -1}
	if a := cl.attempt; a != nil {
		l.opts = a.opts
		a.lease = l
		a.finish()
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	cl.lease = l
	l.moved()
	cl.c.guard.warn()
}

// moved notes the deadline by the wall clock. The mutex is held.
func (l *Lease) moved() {
	l.at = l.c.clock.Now().Add(l.core.Deadline() - l.c.clock.Uptime())
}

// extended notes that the deadline was moved, and returns how to have callers of
// Extend return. The mutex is held.
func (l *Lease) extended() func() {
	l.failed = nil
	l.moved()
	return l.finishExtension(nil)
}

// notExtended notes that an extension failed, and returns how to report it. The
// mutex is held.
func (l *Lease) notExtended() func() {
	err := l.quorumError()
	l.failed = err
	finish := l.finishExtension(err)
	return func() {
		if finish != nil {
			finish()
		}
		l.warn(err)
	}
}

func (l *Lease) finishExtension(err error) func() {
	x := l.extension
	if x == nil {
		return nil
	}
	l.extension = nil
	return func() {
		x.err = err
		close(x.done)
	}
}

// end notes that the lease is over, and returns how to have callers of Extend
// return. The mutex is held.
func (l *Lease) end() func() {
	switch l.core.Cause() {
	case protocol.WasReleased:
		l.cause = ErrReleased
		if l.soon {
			l.cause = fmt.Errorf("%w: %w", ErrReleased, ErrClosed)
		}
	case protocol.WasDetached:
		l.cause = ErrDetached
	case protocol.MaxHeld:
		l.cause = l.lost(ErrMaxHold)
	case protocol.TakenAway:
		l.cause = l.lost(l.c.guard.refusal(l.claim))
	default:
		l.cause = l.lost(nil)
	}
	if l.c.clock.Uptime() < l.core.Deadline() {
		l.at = l.c.clock.Now()
	}
	l.c.keeper.remove(l)
	l.cancel(l.cause)
	return l.finishExtension(l.cause)
}

// Name returns the name of the lock, without the client's prefix.
func (l *Lease) Name() string { return l.name }

// Token returns the fencing token. It stays the same for the life of the
// lease. It is 0 if the client was told to leave tokens out.
func (l *Lease) Token() Token { return l.core.Token() }

// Owner returns the owner under which others see the lock: host/pid/label.
func (l *Lease) Owner() string {
	owner, _ := protocol.OwnerOf(l.core.Value())
	return owner
}

// TTL returns the lock's time to live.
func (l *Lease) TTL() time.Duration { return l.core.TTL() }

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
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// Remaining returns how long the lease is valid unless it is extended. It is not
// positive once it has ended.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remaining()
}

func (l *Lease) remaining() time.Duration {
	left := l.core.Deadline() - l.c.clock.Uptime()
	if l.cause != nil {
		left = min(left, 0)
	}
	return left
}

// Err returns nil while the lease is valid, and why it ended after that.
func (l *Lease) Err() error {
	if l.Remaining() > 0 {
		return nil
	}
	// The deadline may have passed a moment before the keeper sees it.
	l.handle(protocol.Timer, elsewhere)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Extend gives the lock its whole time to live again, on a quorum of nodes. It
// returns ErrLost if the lock is no longer ours. With any other error the lease
// is as it was, valid until its deadline: a *QuorumError if too few nodes
// answered, the context's error if ctx ended, and ErrMaxHold if the deadline is
// at the lease's MaxHold already and cannot be moved any further.
//
// A call that comes while the lease is being extended shares the outcome.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return endedError(ctx, nil)
	}
	l.mu.Lock()
	if err := l.atMaxHold(); err != nil {
		l.mu.Unlock()
		return err // asking would only have the keys outlive the lease
	}
	if l.cause != nil {
		defer l.mu.Unlock()
		return l.cause
	}
	if l.extension == nil {
		l.extension = &extension{done: make(chan struct{})}
	}
	wanted := l.extension
	l.mu.Unlock()
	l.handle(protocol.Extend, l.c.placeFor(ctx))
	select {
	case <-wanted.done:
		return wanted.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.cause, ErrLost) {
		return l.cause // that is worth more than that the context ended
	}
	return endedError(ctx, nil)
}

// atMaxHold returns ErrMaxHold if the deadline is as late as it can be. The
// mutex is held.
func (l *Lease) atMaxHold() error {
	if l.core.Deadline() < l.core.HoldUntil() {
		return nil
	}
	return fmt.Errorf("%w of %v: %q cannot be extended, and is valid for another %v",
		ErrMaxHold, l.opts.MaxHold, l.name, (l.core.Deadline() - l.c.clock.Uptime()).Round(time.Millisecond))
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
	if err := l.Err(); err != nil && !errors.Is(err, ErrReleased) {
		return err
	}
	return l.free(ctx)
}

// free sends the release, and waits for its outcome. Of a lease that was
// released before it returns nil.
func (cl *claim) free(ctx context.Context) error {
	cl.mu.Lock()
	if cl.core.State() > protocol.Held {
		defer cl.mu.Unlock()
		if cl.core.Cause() == protocol.WasReleased {
			return nil
		}
		return cl.lease.cause
	}
	if cl.freed != nil {
		cl.mu.Unlock()
		return nil // another caller releases it
	}
	freed := make(chan struct{})
	cl.freed = freed
	cl.mu.Unlock()
	cl.handle(protocol.Release, cl.c.placeFor(ctx))

	cl.mu.Lock()
	at := cl.core.Timer()
	cl.mu.Unlock()
	if at != 0 {
		cl.awaitFreed(ctx, freed, at)
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	switch {
	case cl.core.Cause() != protocol.WasReleased:
		return cl.lease.cause // it was over in that moment
	case cl.core.Verdict() == protocol.IsFree:
		return nil
	case cl.core.Verdict() == protocol.NotOurs:
		return cl.lost(cl.quorumError())
	case ctx.Err() != nil:
		return endedError(ctx, nil)
	}
	return cl.quorumError()
}

// awaitFreed waits for the release, whose time limit is at.
func (cl *claim) awaitFreed(ctx context.Context, freed chan struct{}, at time.Duration) {
	timer := time.NewTimer(at - cl.c.clock.Uptime())
	defer timer.Stop()
	for {
		select {
		case <-freed:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			cl.handle(protocol.Timer, elsewhere)
			timer.Reset(time.Millisecond) // in case that was early
		}
	}
}
