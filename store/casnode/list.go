package casnode

import (
	"context"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// listBatch is how many rows a list reads in one statement.
const listBatch = 500

// List calls found for every name that is held, waited for, or was broken.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	waiting := map[string]int{}
	if n.queue.store != nil {
		if err := n.prepare(ctx); err != nil {
			return n.explain(err)
		}
		places, err := n.places(ctx, "")
		if err != nil {
			return err
		}
		for _, p := range places {
			waiting[p.Name]++
		}
	}
	return n.walk(ctx, prefix, func(s Snapshot) bool {
		e, err := s.entry()
		if err != nil {
			found(damagedListing(s.Row.Name, s.Now))
			return true
		}
		l := e.Listing(s.Row.Name, s.Now)
		l.Waiters, l.Waiting = nil, l.Waiting+waiting[s.Row.Name]
		if l.Waiting > 0 || l.Reply.Status == node.Held || l.Broken != 0 {
			s.hideStampsIn(&l)
			found(l)
		}
		return true
	})
}

// Evidence returns the name of a lock that is or was kept here; "" if there is
// none.
func (n *Node) Evidence(ctx context.Context) (string, error) {
	evidence := ""
	err := n.walk(ctx, "", func(s Snapshot) bool {
		evidence = s.Row.Name
		return false
	})
	return evidence, err
}

// walk calls f for the rows of names that begin with prefix, until it returns
// false.
func (n *Node) walk(ctx context.Context, prefix string, f func(s Snapshot) bool) error {
	// It creates the table, if it is missing.
	s, err := n.read(ctx, prefix)
	if err != nil {
		return n.explain(err)
	}
	// The name that equals the prefix comes first.
	if prefix != MarkerName && s.Row.Version != "" && !f(s) {
		return nil
	}
	for after := prefix; ; {
		rows, err := n.scan(ctx, &s, after, listBatch)
		if err != nil {
			return n.explain(err)
		}
		for _, s.Row = range rows {
			// They are sorted.
			if !strings.HasPrefix(s.Row.Name, prefix) || !f(s) {
				return nil
			}
			after = s.Row.Name
		}
		if len(rows) < listBatch {
			return nil
		}
	}
}

// scan returns rows, which the snapshot is about from now on.
func (n *Node) scan(ctx context.Context, s *Snapshot, after string, limit int) ([]Row, error) {
	rows, err := n.store.Scan(ctx, after, limit)
	if err == nil && s.by != nil {
		s.scanned = true
		err = n.look(s) // they were not read before
	}
	return rows, err
}

// places returns the places of a name, or of all.
func (n *Node) places(ctx context.Context, name string) ([]Place, error) {
	all, err := n.queue.store.Places(ctx, name)
	return all, n.explain(err)
}

// Look returns what the node knows about one name.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	s, err := n.read(ctx, name)
	if err != nil {
		return node.Listing{}, n.explain(err)
	}
	e, err := s.entry()
	if err != nil {
		return damagedListing(name, s.Now), nil
	}
	l := e.Look(name, s.Now)
	s.hideStampsIn(&l)
	if n.queue.store != nil {
		places, err := n.places(ctx, name)
		if err != nil {
			return l, err
		}
		l.Waiting, l.Waiters = len(places), waiters(places[:min(len(places), node.MaxListed)])
	}
	return l, nil
}

// Identity returns the server's identity and its clock, if it has one.
func (n *Node) Identity(ctx context.Context) (string, time.Time, error) {
	s, err := n.read(ctx, MarkerName)
	if err != nil {
		return "", time.Time{}, n.explain(err)
	}
	if s.by != nil {
		return s.Server, time.Time{}, nil
	}
	return s.Server, s.Now, nil
}
