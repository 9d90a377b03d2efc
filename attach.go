package redlatch

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
)

// Handle returns the lease as text. Attach resumes the lease from it, in this
// process or another.
//
// Who has the handle is the holder: it is enough to extend and release the lock.
// Keep it secret, and use it in one place at a time. If two use it at once, both
// hold the lock with the same token, and no resource can distinguish them. To pass a
// lease on, use Detach, which ends it here.
func (l *Lease) Handle() string {
	l.handle(protocol.Bar)
	l.claim.Lock()
	share, value, passed, ctx := l.claim.Core().Share(), l.claim.Core().Value(), l.passed, l.claim.Context()
	l.claim.Unlock()
	if passed {
		// The value is the next holder's now. This one is nobody's.
		owner, _ := protocol.OwnerOf(value)
		value = protocol.NewValue([16]byte{}, owner)
	}
	kept, held := l.limits(ctx)
	text, err := json.Marshal(handle{
		Shared: share.Mode == node.Shared, Slots: int(share.Slots), Slot: int(share.Slot),
		Name: l.name, Key: l.claim.Key(), Value: value,
		Token: l.Token().String(), TTL: int64(l.TTL()), Kept: kept, Held: held, MaxHold: int64(l.maxHold),
	})
	if err != nil {
		panic("redlatch: a handle is strings and a number: " + err.Error())
	}
	return handlePrefix + base64.RawURLEncoding.EncodeToString(text)
}

// Detach ends the lease here without releasing the lock, and returns its
// handle. The lock stays held on the nodes for the rest of its time to live.
// Until then Attach can resume it.
func (l *Lease) Detach() (string, error) {
	if err := l.Err(); err != nil {
		return "", err
	}
	l.handle(protocol.Detach)
	l.claim.Lock()
	cause := l.cause
	l.claim.Unlock()
	if !errors.Is(cause, ErrDetached) {
		return "", cause
	}
	return l.Handle(), nil
}

// Attach resumes a lease from its handle: it extends the lease at once, and the
// client keeps extending it. It returns ErrLost if the lease no longer holds
// the lock.
//
// A handle is attached once. Attach cannot see whether another process has the
// lease too, and after a second Attach two hold the lock with one token.
func (c *Client) Attach(ctx context.Context, handle string) (*Lease, error) {
	h, err := parseHandle(handle)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, lockerrors.Ended(ctx, nil)
	}
	if c.cluster.Closing() {
		return nil, ErrClosed
	}
	now, known := c.cluster.NodeTime(ctx, h.Key)
	if known && h.heldFor(now) < minTTL {
		return nil, lostWithout(h.Name, h.token, fmt.Errorf("%w of %v", ErrMaxHold, time.Duration(h.MaxHold)))
	}
	a := &attempt{reporter: reporter{c, h.Name, ctx}, asked: h.options(now), handle: h}
	want, err := a.wants(ctx, h.Key)
	if err != nil {
		return nil, err
	}
	if !c.cluster.Start() {
		return nil, ErrClosed
	}
	defer c.cluster.Done()
	c.cluster.Attach(ctx, &a.Attempt, want, h.Value, h.token, a)
	a.Run(ctx)
	lease, err := a.outcome(ctx)
	if err == nil {
		lease.observeStart(ctx, true)
	}
	return lease, err
}

// Release releases the lock of a handle without resuming the lease first. It
// returns ErrLost if the lease no longer held the lock, and a *QuorumError if
// too few nodes answered: the lock then expires by itself. If another process
// extends the lease, it loses it, at its next extension after a quorum of nodes
// has executed the release; the client repeats it on nodes that did not answer.
// With a *QuorumError that process may keep the lock.
func (c *Client) Release(ctx context.Context, handle string) error {
	h, err := parseHandle(handle)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return lockerrors.Ended(ctx, nil)
	}
	if c.cluster.Closing() {
		return ErrClosed
	}
	r := &reporter{c, h.Name, context.WithoutCancel(ctx)}
	now, _ := c.cluster.NodeTime(ctx, h.Key)
	p, opts := c.cluster.Parameters(), h.options(now)
	opts.Keep = min(opts.Keep, p.MaxTTL)
	want := c.want(h.Key, p, opts, h.Slot)
	cl := c.cluster.HeldElsewhere(ctx, want, h.Value, h.token, r)
	if cl.Release(ctx, r, true) {
		cl.AwaitRelease(ctx)
	}
	cl.Lock()
	defer cl.Unlock()
	if cl.Core().Verdict() == protocol.NotOurs {
		return lostWithout(h.Name, h.token, quorumError(cl))
	}
	return notFreed(ctx, cl)
}

// limits returns until when the lock stays taken, 0 if it does not, and when
// MaxHold is over, in microseconds on the nodes' clocks.
func (l *Lease) limits(ctx context.Context) (kept, held int64) {
	if l.handleHeld != 0 {
		return l.handleKept, l.handleHeld // as they were, however often it is handed on
	}
	now, _ := l.c.cluster.NodeTime(ctx, l.claim.Key())
	uptime := l.c.cluster.Clock().Uptime()
	l.claim.Lock()
	defer l.claim.Unlock()
	core := l.claim.Core()
	if until, ok := core.KeepUntil().Get(); ok {
		kept = now.Add(until - uptime).UnixMicro()
	}
	return kept, now.Add(core.HoldUntil() - uptime).UnixMicro()
}
