package redlatch

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
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
// process or in another. Whoever has it can extend and release the lock, so it
// is a secret of a kind.
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
	if err != nil && c.guard.learn(ctx, c, err) {
		opts, err = LockOptions{TTL: cl.req.TTL}.withDefaults(c.opts, c.guard.bounds().MaxTTL)
	}
	if err != nil {
		return nil, err
	}
	c.guard.apply(&cl.req)
	// The lease stands only once the extension is confirmed; until then it is
	// nobody's, and whatever goes wrong, nothing is released.
	req := cl.request(node.OpExtend)
	rd := c.ask(ctx, cl.name, req, 0, nil, nil)
	validity := validityOf(cl.req.TTL, rd.elapsed)
	switch err := c.guard.mismatch(&rd); {
	case rd.won() && validity > 0:
		return c.newLease(cl, opts, rd.start, rd.start+rd.elapsed+validity)
	case err != nil:
		return nil, err
	case rd.lost():
		return nil, &LostError{Name: cl.name, Token: req.Token, Err: rd.quorumError(req)}
	case ctx.Err() != nil:
		return nil, endedError(ctx, rd.quorumError(req))
	}
	return nil, rd.quorumError(req)
}

// Free releases the lock of a handle without taking the lease up first. It
// returns ErrLost if the lock was no longer that lease's, and a *QuorumError if
// too few nodes answered: the lock then runs out by itself.
func (c *Client) Free(ctx context.Context, text string) error {
	cl, err := c.parseHandle(text)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return endedError(ctx, nil)
	}
	if c.isClosed() {
		return ErrClosed
	}
	c.guard.apply(&cl.req)
	cl.end(true, true) // on every node, since nothing of it is under way here
	return (&Lease{claim: cl}).free(ctx)
}

func (c *Client) parseHandle(text string) (*claim, error) {
	bad := func() (*claim, error) {
		// Not the text itself: whoever reads the error could release the lock.
		return nil, &ConfigError{Field: "handle", Value: fmt.Sprintf("%d bytes", len(text)), Bound: "a text that Handle or Detach returned"}
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
	if _, ours := ownerOf(h.Value); !ours || checkText("key", h.Key, 1, MaxNameLen) != nil || checkText("name", h.Name, 1, MaxNameLen) != nil {
		return bad()
	}
	// An extension by nothing would delete the key.
	if checkDuration("ttl", time.Duration(h.TTL), MinTTL, maxMaxTTL) != nil {
		return bad()
	}
	cl := &claim{c: c, name: h.Name, req: node.Request{
		Op: node.OpAcquire, Name: h.Key, Value: h.Value, TTL: time.Duration(h.TTL),
	}}
	if strings.Trim(h.Token, "0") != "" {
		if cl.req.Token, err = ParseToken(h.Token); err != nil {
			return bad()
		}
	}
	return cl, nil
}
