package fence

import (
	"container/list"
	"context"
	"sync"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
)

// GateOptions are the settings of a Gate. The zero value works.
type GateOptions struct {
	// MaxNames limits the number of resources that the gate remembers one by
	// one, each at some 200 bytes beside its name. Defaults to 100,000.
	MaxNames int
}

// A Gate is a guard in the memory of this process, for resources that live and
// die with it: a cache, a device, a child process. It is safe for concurrent
// use.
//
// Its memory is limited. When it is full it forgets the resource that was
// claimed the longest ago, and raises its floor: the highest token of all
// forgotten resources. An unknown resource accepts tokens from the floor on. So
// a forgotten resource never lets a stale writer in. But the gate may refuse a
// holder that is not stale: one that acquired its lock before the last holder
// of a forgotten resource did, and has not claimed its own resource while
// MaxNames others were claimed. Tokens are times, so a lock acquired just now
// is above the floor.
type Gate struct {
	max int

	mu    sync.Mutex
	known map[string]*list.Element // of *claimed
	order list.List                // the last claimed first
	floor node.Token
}

// claimed is a resource and the highest tokens it was claimed with.
type claimed struct {
	resource string
	highest  node.Token // by anyone
	writer   node.Token // by a writer
}

// NewGate returns a gate that has seen nothing.
func NewGate(opts *GateOptions) (*Gate, error) {
	o := optional.Value(opts)
	switch {
	case o.MaxNames < 0:
		return nil, &node.ConfigError{Field: "MaxNames", Value: o.MaxNames, Bound: "at least 1, or 0 for the default"}
	case o.MaxNames == 0:
		o.MaxNames = 100_000
	}
	return &Gate{max: o.MaxNames, known: map[string]*list.Element{}}, nil
}

// Check claims the resource for the token, or returns a *StaleError.
func (g *Gate) Check(ctx context.Context, resource string, token node.Token) error {
	return g.claim(ctx, resource, token, false)
}

// CheckRead claims the resource for a reader's token, or returns a *StaleError
// if a writer with a higher token has claimed it.
func (g *Gate) CheckRead(ctx context.Context, resource string, token node.Token) error {
	return g.claim(ctx, resource, token, true)
}

func (g *Gate) claim(ctx context.Context, resource string, token node.Token, reads bool) error {
	if err := checkInput(resource, token); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at, seen := g.seen(resource)
	least := seen.highest
	if reads {
		least = seen.writer
	}
	if token < least {
		// Stale tokens do not count as use: they must not evict other
		// resources.
		return &StaleError{Resource: resource, Token: token, Highest: least}
	}
	seen.highest = max(seen.highest, token)
	if !reads {
		seen.writer = token
	}
	if at != nil {
		*at.Value.(*claimed) = seen
		g.order.MoveToFront(at)
		return nil
	}
	if len(g.known) == g.max {
		g.forget(g.order.Back())
	}
	g.known[resource] = g.order.PushFront(&seen)
	return nil
}

// Highest returns the least token with which a writer can claim the resource:
// the highest it was claimed with, or the floor if that is not known; 0 if every
// token is accepted.
func (g *Gate) Highest(resource string) node.Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, seen := g.seen(resource)
	return seen.highest
}

// seen returns what is known of a resource. The floor may be a writer's.
func (g *Gate) seen(resource string) (*list.Element, claimed) {
	if at := g.known[resource]; at != nil {
		return at, *at.Value.(*claimed)
	}
	return nil, claimed{resource, g.floor, g.floor}
}

func (g *Gate) forget(at *list.Element) {
	c := at.Value.(*claimed)
	g.floor = max(g.floor, c.highest)
	delete(g.known, c.resource)
	g.order.Remove(at)
}
