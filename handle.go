package redlatch

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// handlePrefix names the format of a handle.
const handlePrefix = "redlatch1."

// handle is a lease as a text. The token is a string: JSON readers that keep
// numbers as doubles must not round it.
type handle struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	Value string `json:"value"`
	Token string `json:"token"`
	TTL   int64  `json:"ttl_ns"`

	token Token
}

// Handle returns the lease as a text with which Attach takes it up, in this
// process or in another. Whoever has it can extend and release the lock, so it
// is a secret of a kind.
func (l *Lease) Handle() string {
	text, err := json.Marshal(handle{
		Name: l.name, Key: l.key, Value: l.core.Value(),
		Token: l.core.Token().String(), TTL: int64(l.core.TTL()),
	})
	if err != nil {
		panic("redlatch: a handle is strings and a number: " + err.Error())
	}
	return handlePrefix + base64.RawURLEncoding.EncodeToString(text)
}

// Detach ends the lease here without releasing the lock, and returns its
// handle. The lock stands on the nodes for what is left of its time to live,
// in which Attach can take it up.
func (l *Lease) Detach() (string, error) {
	if err := l.Err(); err != nil {
		return "", err
	}
	l.handle(protocol.Detach, elsewhere)
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	if !errors.Is(cause, ErrDetached) {
		return "", cause
	}
	return l.Handle(), nil
}

// Attach takes up a lease from its handle, extends it, and from there on keeps
// it. It returns ErrLost if the lock is no longer that lease's.
func (c *Client) Attach(ctx context.Context, text string) (*Lease, error) {
	h, err := parseHandle(text)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, endedError(ctx, nil)
	}
	if c.isClosed() {
		return nil, ErrClosed
	}
	a, err := c.attachAttempt(ctx, h)
	if err != nil && c.guard.learn(ctx, c, err) {
		a, err = c.attachAttempt(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	if !c.background.start() {
		return nil, ErrClosed
	}
	defer c.background.end()
	return a.run(ctx)
}

// attachAttempt returns the attempt to take up the lease of a handle.
func (c *Client) attachAttempt(ctx context.Context, h handle) (*attempt, error) {
	a := &attempt{c: c, name: h.Name, asked: LockOptions{TTL: h.ttl()}, caller: ctx, observed: ctx, deadline: true,
		began: c.clock.Uptime(), first: protocol.Attach, mu: new(sync.Mutex), changed: make(chan struct{}, 1)}
	cfg, marker, err := c.configure(a)
	if err != nil {
		return nil, err
	}
	a.claim = &claim{c: c, name: h.Name, key: h.Key, marker: marker, ctx: context.WithoutCancel(ctx), mu: a.mu,
		core: protocol.HeldElsewhere(cfg, h.Value, h.token), attempt: a}
	return a, nil
}

// Free releases the lock of a handle without taking the lease up first. It
// returns ErrLost if the lock was no longer that lease's, and a *QuorumError if
// too few nodes answered: the lock then runs out by itself.
func (c *Client) Free(ctx context.Context, text string) error {
	h, err := parseHandle(text)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return endedError(ctx, nil)
	}
	if c.isClosed() {
		return ErrClosed
	}
	cfg, marker := c.config(LockOptions{TTL: h.ttl()}, c.guard.bounds())
	cl := &claim{c: c, name: h.Name, key: h.Key, marker: marker, ctx: context.WithoutCancel(ctx), mu: new(sync.Mutex),
		core: protocol.HeldElsewhere(cfg, h.Value, h.token)}
	return cl.free(ctx)
}

func (h *handle) ttl() time.Duration { return time.Duration(h.TTL) }

func parseHandle(text string) (handle, error) {
	bad := func() (handle, error) {
		// Not the text itself: whoever reads the error could release the lock.
		return handle{}, &ConfigError{Field: "handle", Value: fmt.Sprintf("%d bytes", len(text)), Bound: "a text that Handle or Detach returned"}
	}
	encoded, ok := strings.CutPrefix(text, handlePrefix)
	if !ok {
		return bad()
	}
	plain, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return bad()
	}
	var h handle
	if err := json.Unmarshal(plain, &h); err != nil {
		return bad()
	}
	if _, ours := protocol.OwnerOf(h.Value); !ours || checkText("key", h.Key, 1, MaxNameLen) != nil || checkText("name", h.Name, 1, MaxNameLen) != nil {
		return bad()
	}
	// An extension by nothing would delete the key.
	if checkDuration("ttl", time.Duration(h.TTL), MinTTL, maxMaxTTL) != nil {
		return bad()
	}
	if strings.Trim(h.Token, "0") != "" {
		if h.token, err = ParseToken(h.Token); err != nil {
			return bad()
		}
	}
	return h, nil
}
