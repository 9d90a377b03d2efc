package redlatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
)

// A Lease is a lock that was acquired. It belongs to whoever has it, not to a
// goroutine, and is safe for use by many.
//
// Until its Deadline no other lease on the name is valid; the package comment
// says under which assumptions. Unless told otherwise the client extends it in
// the background until it is released, lost, or held for MaxHold.
type Lease struct {
	c      *Client
	name   string
	claim  *runner.Claim
	opts   LockOptions
	ends   context.Context
	cancel context.CancelCauseFunc

	// Under the claim's mutex.
	at        time.Time  // the deadline by the wall clock; once it has ended, when it did
	cause     error      // why it ended; nil while it is held
	failed    error      // of the last extension; nil if it was confirmed
	said      []said     // what the nodes did about extensions, if that was logged
	extension *extension // what callers of Extend wait for; nil if none do
	closing   bool       // the client is closing
}

// extension is a request for more time that callers wait for.
type extension struct {
	done chan struct{}
	err  error
}

// newLease makes the claim of an attempt, which was won, a lease. The mutex is
// held.
func newLease(a *attempt, cl *runner.Claim) *Lease {
	l := &Lease{c: a.c, name: a.name, claim: cl, opts: a.opts}
	l.ends, l.cancel = context.WithCancelCause(context.Background())
	cl.Own((*holding)(l))
	l.moved()
	return l
}

// holding is a lease as the owner of its claim.
type holding Lease

// Name returns the name of the lock.
func (h *holding) Name() string { return h.name }

// Notify takes in what became of the lease. The mutex is held.
func (h *holding) Notify(cl *runner.Claim, what protocol.EffectKind) func() {
	l := (*Lease)(h)
	switch what {
	case protocol.Extended:
		return l.extended()
	case protocol.NotExtended:
		return l.notExtended()
	case protocol.Ended:
		return l.ended()
	}
	return l.reporter().Notify(cl, what)
}

// reporter reports what becomes of the lease.
func (l *Lease) reporter() *reporter { return &reporter{l.c, l.name, l.claim.Context()} }

// moved notes the deadline by the wall clock. The mutex is held.
func (l *Lease) moved() {
	clock := l.c.opts.Clock
	l.at = clock.Now().Add(l.claim.Core().Deadline() - clock.Uptime())
}

// extended notes that the deadline was moved, and returns how to have callers of
// Extend return. The mutex is held.
func (l *Lease) extended() func() {
	l.failed = nil
	l.moved()
	finish := l.finishExtension(nil)
	if l.said == nil {
		return finish
	}
	return both(finish, l.relieve)
}

// notExtended notes that an extension failed, and returns how to report it. The
// mutex is held.
func (l *Lease) notExtended() func() {
	err := quorumError(l.claim)
	l.failed = err
	return both(l.finishExtension(err), func() { l.warn(err) })
}

// finishExtension returns how to have callers of Extend return; nil if none wait.
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

// both returns what calls the first, if there is one, and the second.
func both(first, second func()) func() {
	if first == nil {
		return second
	}
	return func() {
		first()
		second()
	}
}

// ended notes that the lease is over, and returns how to report it. The mutex is
// held.
func (l *Lease) ended() func() {
	switch l.claim.Core().Cause() {
	case protocol.WasReleased:
		l.cause = ErrReleased
		if l.closing {
			l.cause = fmt.Errorf("%w: %w", ErrReleased, ErrClosed)
		}
	case protocol.WasDetached:
		l.cause = ErrDetached
	case protocol.MaxHeld:
		l.cause = l.lost(ErrMaxHold)
	case protocol.TakenAway:
		l.cause = l.lost(l.reporter().refusal(l.claim))
	default:
		l.cause = l.lost(nil)
	}
	if l.c.opts.Clock.Uptime() < l.claim.Core().Deadline() {
		l.at = l.c.opts.Clock.Now()
	}
	l.cancel(l.cause)
	finish := l.finishExtension(l.cause)
	if !l.isNews() {
		return finish
	}
	return both(finish, l.tellEnd)
}

// Name returns the name of the lock, without the client's prefix.
func (l *Lease) Name() string { return l.name }

// Token returns the fencing token. It stays the same for the life of the
// lease. It is 0 if the client was told to leave tokens out.
func (l *Lease) Token() Token { return l.claim.Core().Token() }

// Owner returns the owner under which others see the lock: host/pid/label.
func (l *Lease) Owner() string {
	owner, _ := protocol.OwnerOf(l.claim.Core().Value())
	return owner
}

// TTL returns the lock's time to live.
func (l *Lease) TTL() time.Duration { return l.claim.Core().TTL() }

// Context returns a context that ends with the lease, at the deadline at the
// latest, whether or not any server can be reached. Its cause is ErrLost,
// ErrReleased or ErrDetached.
func (l *Lease) Context() context.Context { return l.ends }

// Deadline returns when the lease ends unless it is extended before. It moves
// only when a quorum of nodes has confirmed an extension, and is the same
// instant at each call until then. Once the lease has ended, it is when it did.
//
// It is a time on this machine's wall clock, with a reading of Go's monotonic
// clock, which time.Until goes by. It does not follow a wall clock that is set,
// and a monotonic clock that stands still while the machine is suspended makes
// time.Until too long by as much. Remaining and Err heed a suspension.
func (l *Lease) Deadline() time.Time {
	l.claim.Lock()
	defer l.claim.Unlock()
	return l.at
}

// Remaining returns how long the lease is valid unless it is extended. It is not
// positive once it has ended.
func (l *Lease) Remaining() time.Duration {
	l.claim.Lock()
	defer l.claim.Unlock()
	return l.claim.Remaining()
}

// Err returns nil while the lease is valid, and why it ended after that.
func (l *Lease) Err() error {
	if l.Remaining() > 0 {
		return nil
	}
	// The deadline may have passed a moment before the keeper sees it.
	l.claim.Handle(protocol.Timer)
	l.claim.Lock()
	defer l.claim.Unlock()
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
	l.claim.Lock()
	if err := l.atMaxHold(); err != nil {
		l.claim.Unlock()
		return err // asking would only have the keys outlive the lease
	}
	if l.cause != nil {
		defer l.claim.Unlock()
		return l.cause
	}
	if l.extension == nil {
		l.extension = &extension{done: make(chan struct{})}
	}
	wanted := l.extension
	l.claim.Unlock()
	l.claim.Extend(ctx)
	select {
	case <-wanted.done:
		return wanted.err
	case <-ctx.Done():
	}
	l.claim.Lock()
	defer l.claim.Unlock()
	if errors.Is(l.cause, ErrLost) {
		return l.cause // that is worth more than that the context ended
	}
	return endedError(ctx, nil)
}

// atMaxHold returns ErrMaxHold if the deadline is as late as it can be. The
// mutex is held.
func (l *Lease) atMaxHold() error {
	core := l.claim.Core()
	if core.Deadline() < core.HoldUntil() {
		return nil
	}
	return fmt.Errorf("%w of %v: %q cannot be extended, and is valid for another %v",
		ErrMaxHold, l.opts.MaxHold, l.name, (core.Deadline() - l.c.opts.Clock.Uptime()).Round(time.Millisecond))
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
	return l.free(ctx, l.claim)
}

// free sends the release, and returns its outcome.
func (l *Lease) free(ctx context.Context, cl *runner.Claim) error {
	waited := cl.Release(ctx)
	cl.Lock()
	defer cl.Unlock()
	switch {
	case !waited && l.cause == nil:
		return nil // another caller releases it
	case cl.Core().Cause() != protocol.WasReleased:
		return l.cause // it was over before, or in that moment
	case !waited:
		return nil
	case cl.Core().Verdict() == protocol.NotOurs:
		return l.lost(quorumError(cl))
	}
	return notFreed(ctx, cl)
}

// notFreed says why a release did not free the lock; nil if it did. The mutex is
// held.
func notFreed(ctx context.Context, cl *runner.Claim) error {
	switch {
	case cl.Core().Verdict() == protocol.IsFree:
		return nil
	case ctx.Err() != nil:
		return endedError(ctx, nil)
	}
	return quorumError(cl)
}
