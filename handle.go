package redlatch

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// The formats of a handle. Shared leases and slots have one of their own: a
// program that does not know them must not take such a lease for an exclusive
// one.
const (
	handlePrefix       = "redlatch1."
	sharedHandlePrefix = "redlatch2."
)

// handle is a lease as text. The token is a string, because JSON readers that
// keep numbers as doubles would round it.
type handle struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Token string `json:"token"`
	TTL   int64  `json:"ttl_ns"`

	Shared bool `json:"shared,omitempty"`
	Slots  int  `json:"slots,omitempty"`
	Slot   int  `json:"slot,omitempty"`
	// Kept is until when the lock stays taken, in microseconds of wall time.
	Kept int64 `json:"kept_us,omitempty"`

	token Token
}

// Handle returns the lease as text. Attach resumes the lease from it, in this
// process or another. Keep it secret: it is enough to extend and release the
// lock.
func (l *Lease) Handle() string {
	share, prefix := l.share(), handlePrefix
	if share.Mode != node.Exclusive {
		prefix = sharedHandlePrefix
	}
	text, err := json.Marshal(handle{
		Shared: share.Mode == node.Shared, Slots: int(share.Slots), Slot: int(share.Slot),
		Name: l.name, Key: l.claim.Key(), Value: l.claim.Core().Value(),
		Token: l.Token().String(), TTL: int64(l.TTL()), Kept: l.keptUntil(),
	})
	if err != nil {
		panic("redlatch: a handle is strings and a number: " + err.Error())
	}
	return prefix + base64.RawURLEncoding.EncodeToString(text)
}

// Detach ends the lease here without releasing the lock, and returns its
// handle. The lock stays held on the nodes for the rest of its time to live.
// Until then Attach can resume it.
func (l *Lease) Detach() (string, error) {
	if err := l.Err(); err != nil {
		return "", err
	}
	l.claim.Handle(protocol.Detach)
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
func (c *Client) Attach(ctx context.Context, text string) (*Lease, error) {
	h, err := parseHandle(text)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, endedError(ctx, nil)
	}
	if c.cluster.Closing() {
		return nil, ErrClosed
	}
	a, err := c.newAttach(ctx, h)
	if err != nil && c.cluster.Learn(ctx, err) {
		a, err = c.newAttach(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	if !c.cluster.Start() {
		return nil, ErrClosed
	}
	defer c.cluster.Done()
	a.run.Run(ctx)
	lease, err := a.outcome(ctx)
	if err == nil {
		lease.observeStart(ctx, true)
	}
	return lease, err
}

// newAttach returns the attempt to resume the lease of a handle.
func (c *Client) newAttach(ctx context.Context, h handle) (*attempt, error) {
	a := &attempt{reporter: reporter{c, h.Name, ctx}, asked: h.options(c.opts.Clock.Now()), slot: uint8(h.Slot)}
	var err error
	a.run, err = c.cluster.NewAttach(ctx, h.Key, h.Value, h.token, a)
	return a, err
}

// Free releases the lock of a handle without resuming the lease first. It
// returns ErrLost if the lease no longer held the lock, and a *QuorumError if
// too few nodes answered: the lock then expires by itself.
func (c *Client) Free(ctx context.Context, text string) error {
	h, err := parseHandle(text)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return endedError(ctx, nil)
	}
	if c.cluster.Closing() {
		return ErrClosed
	}
	r := &reporter{c, h.Name, context.WithoutCancel(ctx)}
	opts := h.options(c.opts.Clock.Now())
	share := opts.share()
	share.Slot = uint8(h.Slot)
	cl := c.cluster.HeldElsewhere(ctx, h.Key, h.Value, h.token, runner.Terms{Share: share, TTL: opts.TTL, Keep: opts.Keep, KeepAlive: true}, r)
	cl.Release(ctx)
	cl.Lock()
	defer cl.Unlock()
	if cl.Core().Verdict() == protocol.NotOurs {
		return &LostError{Name: h.Name, Token: h.token, Err: quorumError(cl)}
	}
	return notFreed(ctx, cl)
}

// options returns the options of the lease.
func (h *handle) options(now time.Time) LockOptions {
	o := LockOptions{TTL: time.Duration(h.TTL), Shared: h.Shared, Slots: h.Slots}
	if h.Kept != 0 {
		o.Keep = max(time.UnixMicro(h.Kept).Sub(now), 0)
	}
	return o
}

// keptUntil returns until when the lock stays taken, in microseconds of wall
// time; 0 if it does not.
func (l *Lease) keptUntil() int64 {
	l.claim.Lock()
	defer l.claim.Unlock()
	clock, kept := l.c.opts.Clock, l.claim.Core().KeptUntil()
	if kept == 0 {
		return 0
	}
	return clock.Now().Add(kept - clock.Uptime()).UnixMicro()
}

func parseHandle(text string) (handle, error) {
	bad := func() (handle, error) {
		// Not the text itself: a reader of the error could release the lock
		// with it.
		return handle{}, &ConfigError{Field: "handle", Value: fmt.Sprintf("%d bytes", len(text)), Bound: "a text that Handle or Detach returned"}
	}
	encoded, exclusive := strings.CutPrefix(text, handlePrefix)
	if !exclusive {
		var shared bool
		if encoded, shared = strings.CutPrefix(text, sharedHandlePrefix); !shared {
			return bad()
		}
	}
	plain, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return bad()
	}
	var h handle
	if err := json.Unmarshal(plain, &h); err != nil {
		return bad()
	}
	if _, ours := protocol.OwnerOf(h.Value); !ours || checkText("key", h.Key, 1, maxNameLen) != nil || checkText("name", h.Name, 1, maxNameLen) != nil {
		return bad()
	}
	if exclusive == (h.Shared || h.Slots != 0) || h.Shared && h.Slots != 0 || h.Slots < 0 || h.Slots > node.MaxSlots ||
		h.Slot < 0 || h.Slot >= max(h.Slots, 1) || h.Kept < 0 {
		return bad()
	}
	// An extension by 0 would delete the key.
	if checkDuration("ttl", time.Duration(h.TTL), minTTL, maxMaxTTL) != nil {
		return bad()
	}
	if strings.Trim(h.Token, "0") != "" {
		if h.token, err = ParseToken(h.Token); err != nil {
			return bad()
		}
	}
	return h, nil
}
