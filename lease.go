package redlatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

// A Lease is a lock that was acquired. It is not tied to a goroutine, and is
// safe for use by many.
//
// Until its Deadline no other lease on the name is valid; the package comment
// lists the assumptions. The client extends it in the background until it is
// released, lost, or held for MaxHold; LockOptions.NoKeepAlive disables that.
type Lease struct {
	c     *Client
	name  string
	claim *runner.Claim // the next holder's too, if the lease was passed on
	token Token

	// Of the handle that it was attached with; 0 for a lease that was acquired.
	handleKept, handleHeld int64
	maxHold                time.Duration
	kept                   bool // it is extended in the background

	// Under the claim's mutex.
	at        time.Time       // the deadline by the wall clock; after the end, when the lease ended, plus early
	cause     error           // why the lease ended; nil while it is held
	passed    bool            // it was passed on: the claim is another's
	early     time.Duration   // how long before the deadline it was passed on
	failed    error           // error of the last extension; nil if it was confirmed
	said      []said          // what each node did about extensions, if that was logged
	extension *extension      // what callers of Extend wait for; nil if none do
	closing   bool            // the client is closing
	contended chan struct{}   // what Contended returns; nil if it was not called
	ends      context.Context // what Context returns; nil if it was not called
	cancel    context.CancelCauseFunc
	observed  observation
}

// extension is an extension that callers of Extend wait for.
type extension struct {
	done chan struct{}
	err  error
}

// holding is a lease as the owner of its claim.
type holding Lease

// handle passes an event of the lease to its claim.
func (l *Lease) handle(kind protocol.EventKind) { l.claim.Handle((*holding)(l), kind) }

// Name returns the name of the lock.
func (h *holding) Name() string { return h.name }

// Notify handles news of the lease's claim. The mutex is held.
func (h *holding) Notify(cl *runner.Claim, what protocol.News) func() {
	l := (*Lease)(h)
	switch what {
	case protocol.Extended:
		return l.extended()
	case protocol.NotExtended:
		return l.notExtended()
	case protocol.Ended:
		return l.ended()
	}
	if _, ok := l.c.opts.Observer.(observe.RoundObserver); !ok {
		return nil
	}
	return l.reporter().Notify(cl, what)
}

// reporter reports what becomes of the lease.
func (l *Lease) reporter() *reporter {
	ctx := l.claim.Context()
	if l.observed.ctx != nil {
		ctx = l.observed.ctx
	}
	return &reporter{l.c, l.name, ctx}
}

// moved sets the deadline by the wall clock. The mutex is held.
func (l *Lease) moved() {
	clock := l.c.cluster.Clock()
	l.at = clock.Now().Add(l.claim.Core().Deadline() - clock.Uptime())
}

// extended records that the deadline was moved. It returns a function that ends
// the calls of Extend. The mutex is held.
func (l *Lease) extended() func() {
	l.failed = nil
	l.moved()
	finish := l.finishExtension(nil)
	if l.said == nil {
		return finish
	}
	return both(finish, l.relieve)
}

// notExtended records that an extension failed. It returns a function that
// reports it. The mutex is held.
func (l *Lease) notExtended() func() {
	err := quorumError(l.claim)
	l.failed = err
	return both(l.finishExtension(err), func() { l.warn(err) })
}

// finishExtension returns how to have callers of Extend return; nil if none
// wait.
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

// both returns a function that calls the first, if there is one, and the
// second.
func both(first, second func()) func() {
	if first == nil {
		return second
	}
	return func() {
		first()
		second()
	}
}

// ended records that the lease has ended. It returns a function that reports
// it. The mutex is held.
func (l *Lease) ended() func() {
	switch l.claim.Core().Cause() {
	case protocol.WasReleased, protocol.WasPassed:
		l.cause, l.passed = ErrReleased, l.claim.Core().Cause() == protocol.WasPassed
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
	clock := l.c.cluster.Clock()
	if !l.passed && clock.Uptime() < l.claim.Core().Deadline() {
		l.at = clock.Now()
	}
	if l.ends != nil {
		l.cancel(l.cause)
	}
	finish := l.finishExtension(l.cause)
	if l.observer() == nil && !errors.Is(l.cause, ErrLost) {
		return finish
	}
	end := observe.LeaseEnd{Name: l.name, Token: l.token, Held: clock.Uptime() - l.claim.Core().Acquired(), Cause: l.cause}
	return both(finish, func() { l.tellEnd(end) })
}

// Name returns the name of the lock, without the client's prefix.
func (l *Lease) Name() string { return l.name }

// Token returns the fencing token. It does not change during the life of the
// lease.
func (l *Lease) Token() Token { return l.token }

// Owner returns the owner that other clients see: host/pid/label.
func (l *Lease) Owner() string {
	owner, _ := protocol.OwnerOf(l.claim.Core().Value())
	return owner
}

// Slot returns the slot of the lease, from 0 to LockOptions.Slots-1. No other
// valid lease has the same slot. It is 0 for a lease without slots. It does not
// change during the life of the lease.
func (l *Lease) Slot() int { return int(l.share().Slot) }

// share returns what the lease holds.
func (l *Lease) share() node.Share {
	l.claim.Lock()
	defer l.claim.Unlock()
	return l.claim.Core().Share()
}

// TTL returns the lock's time to live.
func (l *Lease) TTL() time.Duration { return l.claim.Core().TTL() }

// Context returns a context that ends with the lease: at the deadline at the
// latest, even if no server can be reached. Its cause is ErrLost, ErrReleased
// or ErrDetached.
func (l *Lease) Context() context.Context {
	l.claim.Lock()
	defer l.claim.Unlock()
	if l.ends == nil {
		l.ends, l.cancel = context.WithCancelCause(context.Background())
		if l.cause != nil {
			l.cancel(l.cause)
		}
	}
	return l.ends
}

// Deadline returns when the lease ends unless it is extended before. It moves
// only when a quorum of nodes has confirmed an extension; until then each call
// returns the same instant. After the end of the lease it returns when the
// lease ended.
//
// It is a time on this machine's wall clock with a reading of Go's monotonic
// clock, which time.Until uses. It does not change when the wall clock is set.
// On systems whose monotonic clock stops while the machine is suspended,
// time.Until is too long by the time of the suspension. Remaining and Err take
// a suspension into account.
func (l *Lease) Deadline() time.Time {
	l.claim.Lock()
	defer l.claim.Unlock()
	return l.at.Add(-l.early)
}

// Remaining returns how long the lease is valid unless it is extended. It is
// zero or negative after the lease has ended.
func (l *Lease) Remaining() time.Duration {
	l.claim.Lock()
	defer l.claim.Unlock()
	return l.remaining()
}

// remaining is Remaining. The mutex is held.
func (l *Lease) remaining() time.Duration {
	if l.passed {
		return 0
	}
	return l.claim.Remaining()
}

// Err returns nil while the lease is valid, and after that why it ended.
func (l *Lease) Err() error {
	if l.Remaining() > 0 {
		return nil
	}
	// The deadline may have passed before the keeper has noticed.
	l.handle(protocol.Timer)
	l.claim.Lock()
	defer l.claim.Unlock()
	return l.cause
}

// Extend gives the lock its whole time to live again, on a quorum of nodes. It
// returns ErrLost if the lock is no longer ours. After any other error the
// lease is unchanged and valid until its deadline: a *QuorumError if too few
// nodes answered, the context's error if ctx ended, and ErrMaxHold if the
// deadline has reached the lease's MaxHold.
//
// A call during an extension waits for that extension and returns its result.
func (l *Lease) Extend(ctx context.Context) error { return l.extend(ctx, protocol.Extend) }

// Downgrade makes a writer a reader, without releasing the lock in between:
// readers are let in, and no writer holds the lock before them. The caller must
// have stopped writing. The token stays the same. A lease cannot be made a
// writer again: two readers that both wanted that would wait for each other.
//
// It extends the lease like Extend, and returns the same errors. After an error
// nodes may have let readers in, and the background goes on to downgrade the
// others: the lease is a reader's from the moment of the call. Downgrade of a
// reader does nothing. A lease with slots has no writer: a *ConfigError.
func (l *Lease) Downgrade(ctx context.Context) error {
	switch share := l.share(); share.Mode {
	case node.Shared:
		return l.Err()
	case node.Slotted:
		return &ConfigError{Field: "Slots", Value: share.Slots, Bound: "0 for a lease that is downgraded"}
	}
	return l.extend(ctx, protocol.Downgrade)
}

// extend asks for an extension, and waits for its result.
func (l *Lease) extend(ctx context.Context, how protocol.EventKind) error {
	if err := l.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return lockerrors.Ended(ctx, nil)
	}
	l.claim.Lock()
	if l.cause != nil {
		defer l.claim.Unlock()
		return l.cause
	}
	if err := l.atMaxHold(); err != nil {
		l.claim.Unlock()
		return err // an extension would only make the keys outlive the lease
	}
	if l.extension == nil {
		l.extension = &extension{done: make(chan struct{})}
	}
	asked := l.extension
	l.claim.Unlock()
	l.handle(how)
	select {
	case <-asked.done:
		return asked.err
	case <-ctx.Done():
	}
	l.claim.Lock()
	defer l.claim.Unlock()
	if errors.Is(l.cause, ErrLost) {
		return l.cause // the loss matters more than the end of the context
	}
	return lockerrors.Ended(ctx, nil)
}

// atMaxHold returns ErrMaxHold if the deadline has reached MaxHold. The mutex
// is held.
func (l *Lease) atMaxHold() error {
	core := l.claim.Core()
	if core.Deadline() < core.HoldUntil() {
		return nil
	}
	return fmt.Errorf("%w of %v: %q cannot be extended, and is valid for another %v",
		ErrMaxHold, l.maxHold, l.name, (core.Deadline() - l.c.cluster.Clock().Uptime()).Round(time.Millisecond))
}

// Release ends the lease and frees the lock on every node. It returns as soon
// as a quorum has confirmed. Nodes that did not answer are asked again in the
// background, until they answer or the lock has expired there. A node that did
// not have the lock, because it missed the acquisition or forgot it, counts as
// one that freed it.
//
// Release returns ErrLost if the lock had been lost before, or if the nodes
// that still had it are fewer than a quorum. It returns a *QuorumError if too
// few nodes answered: the lock then expires by itself, within its time to live.
// Releasing twice is harmless.
func (l *Lease) Release(ctx context.Context) error {
	if l.claim.PassOn((*holding)(l)) {
		return nil
	}
	if err := l.Err(); err != nil && !errors.Is(err, ErrReleased) {
		return err
	}
	return l.free(ctx)
}

// free sends the release and returns its result.
func (l *Lease) free(ctx context.Context) error {
	l.claim.AwaitPass(ctx, (*holding)(l))
	return l.freed(ctx, l.claim.Release(ctx, (*holding)(l), true))
}

// freed waits for a release, if it was sent, and returns its result.
func (l *Lease) freed(ctx context.Context, sent bool) error {
	cl := l.claim
	if sent {
		cl.AwaitRelease(ctx)
	}
	cl.Lock()
	defer cl.Unlock()
	switch {
	case l.passed || !sent && l.cause == nil:
		return nil // it was passed on, or another caller releases it
	case cl.Core().Cause() != protocol.WasReleased:
		return l.cause // the lease had ended before, or ended in that moment
	case !sent:
		return nil
	case cl.Core().Verdict() == protocol.NotOurs:
		return l.lost(quorumError(cl))
	}
	return notFreed(ctx, cl)
}

// notFreed returns why a release did not free the lock, or nil if it did. The
// mutex is held.
func notFreed(ctx context.Context, cl *runner.Claim) error {
	switch {
	case cl.Core().Verdict() == protocol.IsFree:
		return nil
	case ctx.Err() != nil:
		return lockerrors.Ended(ctx, nil)
	}
	return quorumError(cl)
}
