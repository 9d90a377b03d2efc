package redlatch

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
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
}

// Handle returns the lease as a text with which Attach takes it up, in this
// process or in another. Whoever has it can extend and release the lock.
func (l *Lease) Handle() string {
	text, err := json.Marshal(handle{
		Name: l.name, Key: l.req.Name, Value: l.req.Value,
		Token: l.req.Token.String(), TTL: int64(l.req.TTL),
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
	if first, cause := l.c.keeper.end(l, ErrDetached); !first {
		return "", cause
	}
	return l.Handle(), nil
}

// Attach takes up a lease from its handle, extends it, and from there on keeps
// it. It returns ErrLost if the lock is no longer that lease's.
func (c *Client) Attach(ctx context.Context, text string) (*Lease, error) {
	cl, err := c.parseHandle(text)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, endedError(ctx, nil)
	}
	if c.isClosed() {
		return nil, ErrClosed
	}
	opts, err := LockOptions{TTL: cl.req.TTL}.withDefaults(c.opts, c.guard.bounds().MaxTTL)
	if err != nil {
		return nil, err
	}
	// The lease stands only once the extension is confirmed; until then it is
	// one whose deadline is now.
	l := &Lease{claim: cl, opts: opts, acquired: c.clock.Uptime(), index: -1}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.deadline = l.acquired
	if err := l.extend(ctx); err != nil {
		if ctx.Err() != nil {
			err = endedError(ctx, err)
		}
		return nil, err
	}
	return l, nil
}

func (c *Client) parseHandle(text string) (*claim, error) {
	bad := func() (*claim, error) {
		return nil, &ConfigError{Field: "handle", Value: text, Bound: "a text that Handle or Detach returned"}
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
	if _, ours := ownerOf(h.Value); !ours || checkText("key", h.Key, 1, MaxNameLen) != nil {
		return bad()
	}
	cl := &claim{c: c, name: h.Name, req: Request{
		Op: OpAcquire, Name: h.Key, Value: h.Value, TTL: time.Duration(h.TTL),
	}}
	c.guard.apply(&cl.req)
	if strings.Trim(h.Token, "0") != "" {
		if cl.req.Token, err = ParseToken(h.Token); err != nil {
			return bad()
		}
	}
	return cl, nil
}
