// Package rownode is a node that keeps all that it knows about a name in one row
// of a table, and changes it by compare-and-swap.
//
// An operation reads the row together with the store's clock, executes the
// request on a copy (package nodestate has the rules), and writes the copy if
// the row still has the version that was read. If not, it begins again. So an
// operation is atomic as of the moment of its read: in between nothing has
// happened to the name, and all times that it writes count from that moment. It
// may be late, as any node may be.
//
// Each step is one statement, in a transaction of its own. A client that freezes
// between the two holds no lock of the database and blocks nobody. Nothing
// depends on a session, so a pooler may give each statement another connection.
package rownode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// Row is a row of the table.
type Row struct {
	Name  string
	State []byte
	// Version changes with every write, and never comes back. It is 0 if there
	// is no row.
	Version int64
	// Until is when the row is of no use any more, and may be swept.
	Until time.Time
}

// Snapshot is what a store reads in one statement.
type Snapshot struct {
	Row    Row // of the name that was asked for
	Marker Row
	// Now is the store's clock. It was read after the statement began.
	Now time.Time
	// Server identifies the server. It changes when the server may have
	// forgotten what it acknowledged.
	Server string
}

// MarkerName is the name of the row with the marker. It is no name of a lock.
const MarkerName = ""

// Store is a table. Each method is one statement, in a transaction of its own. An
// error that wraps node.ErrUnsent promises that a Swap had no effect.
type Store interface {
	// Prepare creates the table if it is not there. It is called once, and again
	// as long as it fails. Its errors say that nothing was done.
	Prepare(ctx context.Context) error
	// Read returns the row of a name, and the marker.
	Read(ctx context.Context, name string) (Snapshot, error)
	// Swap writes a row if the stored one has the version old, and none if old
	// is 0. It reports whether it did. It sends the wakes with it.
	Swap(ctx context.Context, old int64, next Row, wakes []node.Wake) (bool, error)
	// Rows returns up to limit rows in the order of their names, behind after,
	// and the store's clock.
	Rows(ctx context.Context, after string, limit int) ([]Row, time.Time, error)
	// Sweep removes rows whose time is over.
	Sweep(ctx context.Context) error
	// String names the store.
	String() string
	// Close frees its resources.
	Close() error
}

// Node is a node over a Store.
type Node struct {
	store  Store
	silent bool

	preparing sync.Mutex
	prepared  atomic.Bool
}

// New returns a node. silent says that the store delivers no wakes: all waiters
// poll.
func New(store Store, silent bool) *Node { return &Node{store: store, silent: silent} }

// prepare prepares the store before its first use.
func (n *Node) prepare(ctx context.Context) error {
	if n.prepared.Load() {
		return nil
	}
	n.preparing.Lock()
	defer n.preparing.Unlock()
	if n.prepared.Load() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.store.Prepare(ctx); err != nil {
		return err
	}
	n.prepared.Store(true)
	return nil
}

// read reads a row, from a store that is prepared.
func (n *Node) read(ctx context.Context, name string) (Snapshot, error) {
	if err := n.prepare(ctx); err != nil {
		return Snapshot{}, err
	}
	return n.store.Read(ctx, name)
}

// String names the node.
func (n *Node) String() string { return n.store.String() }

// Close closes the store.
func (n *Node) Close() error { return n.store.Close() }

// sweepEvery is how many writes come to one sweep, on average.
const sweepEvery = 64

// Do executes one request.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := n.check(req); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	if err := ctx.Err(); err != nil {
		return node.Reply{}, n.unsent(err)
	}
	for try := 0; ; try++ {
		reply, done, err := n.try(ctx, req)
		if done || err != nil {
			return reply, err
		}
		if err := pause(ctx, try); err != nil {
			return node.Reply{}, n.unsent(fmt.Errorf("others changed the row %d times: %w", try+1, err))
		}
	}
}

func (n *Node) check(req node.Request) error {
	if req.Name == MarkerName && req.Op != node.OpMark {
		return &node.ConfigError{Field: "name", Value: req.Name, Bound: "a name of 1 byte or more"}
	}
	return nodestate.Check(req)
}

// try executes a request once. done is false if another one changed the row in
// between.
func (n *Node) try(ctx context.Context, req node.Request) (reply node.Reply, done bool, err error) {
	s, err := n.read(ctx, req.Name)
	if err != nil {
		return reply, false, n.unsent(err)
	}
	marker, err := nodestate.DecodeMarker(s.Marker.State)
	if err != nil {
		return reply, false, n.unsent(fmt.Errorf("the marker: %w", err))
	}
	server := nodestate.Server{ID: s.Server, Marker: marker, Silent: n.silent}
	if req.Op == node.OpMark {
		reply, _ = server.Apply(s.Now, req)
		next := Row{Name: MarkerName, Version: s.nextVersion(s.Marker), State: server.Marker.AppendTo(nil), Until: forever}
		if server.Marker == marker {
			return reply, true, nil
		}
		done, err = n.store.Swap(ctx, s.Marker.Version, next, nil)
		return reply, done, n.explain(err)
	}
	entry, err := nodestate.DecodeEntry(s.Row.State)
	if err != nil {
		return reply, false, n.unsent(fmt.Errorf("the row of %q: %w", req.Name, err))
	}
	// What has expired meanwhile is no change that is worth a write.
	entry.Settle(s.Now)
	before := entry.AppendTo(nil)
	server.Put(req.Name, &entry)
	reply, wakes := server.Apply(s.Now, req)
	var after nodestate.Entry
	if e := server.Stored(req.Name); e != nil {
		after = *e
	}
	state := after.AppendTo(nil)
	if req.Op == node.OpInspect || bytes.Equal(before, state) {
		return reply, true, nil
	}
	next := Row{Name: req.Name, Version: s.nextVersion(s.Row), State: state, Until: after.Over()}
	done, err = n.store.Swap(ctx, s.Row.Version, next, wakes)
	if done && rand.N(sweepEvery) == 0 {
		_ = n.store.Sweep(ctx) // another write will sweep if this one cannot
	}
	return reply, done, n.explain(err)
}

// forever is the Until of a marker.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// nextVersion returns the version that follows a row's. That of a new row is the
// time, so that it differs from those of a row that was swept before.
func (s *Snapshot) nextVersion(r Row) int64 {
	if r.Version == 0 {
		return s.Now.UnixMicro()
	}
	return r.Version + 1
}

// pause waits before the next try: ever longer, and not all for the same time.
func pause(ctx context.Context, try int) error {
	most := time.Millisecond << min(try, 5)
	t := time.NewTimer(rand.N(most) + most/8)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unsent makes err the error of a request that had no effect.
func (n *Node) unsent(err error) error {
	if errors.Is(err, node.ErrUnsent) {
		return n.explain(err)
	}
	return n.explain(fmt.Errorf("%w (%w)", err, node.ErrUnsent))
}

func (n *Node) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redlatch: %s: %w", n.store, err)
}

// listBatch is how many rows a list reads in one statement.
const listBatch = 500

// List calls found for every name that is held or waited for.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	return n.walk(ctx, prefix, func(name string, e *nodestate.Entry, now time.Time) bool {
		l := e.Listing(name, now)
		l.Waiters = nil
		if l.Waiting > 0 || l.Reply.Status == node.Held {
			found(l)
		}
		return true
	})
}

// Evidence returns the name of a lock that is or was kept here; "" if there is
// none.
func (n *Node) Evidence(ctx context.Context) (string, error) {
	evidence := ""
	err := n.walk(ctx, "", func(name string, _ *nodestate.Entry, _ time.Time) bool {
		evidence = name
		return false
	})
	return evidence, err
}

// walk calls f for the rows of names that begin with prefix, until it returns
// false.
func (n *Node) walk(ctx context.Context, prefix string, f func(name string, e *nodestate.Entry, now time.Time) bool) error {
	after := prefix
	if err := n.prepare(ctx); err != nil {
		return n.explain(err)
	}
	if prefix != "" {
		// The name that equals the prefix comes first.
		l, err := n.store.Read(ctx, prefix)
		if err != nil {
			return n.explain(err)
		}
		if l.Row.Version != 0 {
			if more, err := visit(l.Row, l.Now, f); !more || err != nil {
				return n.explain(err)
			}
		}
	}
	for {
		rows, now, err := n.store.Rows(ctx, after, listBatch)
		if err != nil {
			return n.explain(err)
		}
		for _, r := range rows {
			if !strings.HasPrefix(r.Name, prefix) {
				return nil // they are sorted
			}
			if more, err := visit(r, now, f); !more || err != nil {
				return n.explain(err)
			}
			after = r.Name
		}
		if len(rows) < listBatch {
			return nil
		}
	}
}

func visit(r Row, now time.Time, f func(name string, e *nodestate.Entry, now time.Time) bool) (bool, error) {
	e, err := nodestate.DecodeEntry(r.State)
	if err != nil {
		return false, fmt.Errorf("the row of %q: %w", r.Name, err)
	}
	e.Settle(now)
	return f(r.Name, &e, now), nil
}

// Look returns what the node knows about one name.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	s, err := n.read(ctx, name)
	if err != nil {
		return node.Listing{}, n.explain(err)
	}
	e, err := nodestate.DecodeEntry(s.Row.State)
	if err != nil {
		return node.Listing{}, n.explain(fmt.Errorf("the row of %q: %w", name, err))
	}
	var server nodestate.Server
	server.Put(name, &e)
	return server.Look(s.Now, name), nil
}

// Identity returns the server's identity and its clock.
func (n *Node) Identity(ctx context.Context) (string, time.Time, error) {
	s, err := n.read(ctx, MarkerName)
	if err != nil {
		return "", time.Time{}, n.explain(err)
	}
	return s.Server, s.Now, nil
}
