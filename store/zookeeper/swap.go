package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// Swap writes a row by a multi, which checks identity, floor, marker and row, removes the
// place and delivers the wakes. The places are read with the answer: both are asked for
// at once, and the version of the znode shows whether they were read after the multi.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (bool, casnode.Snapshot, error) {
	row, present := w.Row, casnode.Snapshot{}
	p, ok, err := s.sight(ctx, row.Name, seen)
	if err != nil {
		return false, present, unsent(explain(err))
	}
	c := callOf(ctx)
	if !ok {
		c.refused = true
		return false, present, nil
	}
	conn, err := s.session(ctx)
	if err != nil {
		return false, present, err
	}
	data := encode(row.Version, row.State)
	ops := []any{
		&zk.CheckVersionRequest{Path: s.root + identityPath + "/" + seen.Server, Version: -1},
		&zk.CheckVersionRequest{Path: s.root + floorPath, Version: p.floorAt},
	}
	if row.Name != casnode.MarkerName {
		ops = append(ops, &zk.CheckVersionRequest{Path: s.root + markerPath, Version: p.marker.at})
	}
	at := int32(0) // the version of the znode that is written
	if p.row.Version == "" && p.row.zxid == 0 {
		ops = append(ops, &zk.CreateRequest{Path: s.row(row.Name), Data: data, Acl: s.acl})
	} else {
		at = p.row.at + 1
		ops = append(ops, &zk.SetDataRequest{Path: s.row(row.Name), Data: data, Version: p.row.at})
	}
	size := len(data) + len(s.row(row.Name)) + 1024
	if size > s.opts.MaxBuffer {
		return false, present, fmt.Errorf("the row of %q has %d bytes, %w (%w)", row.Name, len(data), ErrTooLarge, node.ErrUnsent)
	}
	for _, wake := range w.Wakes {
		if size += 2*len(wake.Text) + 1024; wake.Process != "" && size < s.opts.MaxBuffer { // else it is lost
			ops = append(ops, s.letter(wake, row.Version, at)...)
		}
	}
	drop := ""
	if w.Drop != nil {
		if drop, err = s.place(ctx, conn, p, *w.Drop); err != nil {
			return false, present, unsent(explain(err))
		}
	}
	early, look := make(chan stored, 1), w.Look
	for _, wake := range w.Wakes {
		if i := p.row.rank(wake.Waiter) - 1; look && i >= 0 && w.Drop == nil {
			// The row is kept for a place that there is then: who leaves it later sees that.
			ops = append(ops, &zk.CheckVersionRequest{Path: s.row(row.Name) + "/" + p.row.queue[i].child, Version: -1})
			look = false
		}
	}
	done, err := s.multi(ctx, conn, ops, drop, func() {
		if !look {
			return
		}
		defer close(early)
		if r, err := s.list(conn, row.Name); err == nil {
			early <- r
		}
	})
	if done && w.Drop != nil {
		s.dropped(*w.Drop)
	}
	if done && row.Name != casnode.MarkerName {
		// The next Swap may come without a Read.
		p.row.Row, p.row.at = row, at
		if look {
			r, _ := within(ctx, func() (stored, error) {
				if r, ok := <-early; ok && r.at >= at {
					return r, nil
				}
				return inSession(ctx, &s.link, func(conn *zk.Conn) (stored, error) { return s.list(conn, row.Name) })
			})
			p.row.queue = r.queue // if it is not known, who is first asks again
		}
		present = s.snapshot(row.Name, p, "")
	}
	if !done {
		s.remembered.Lock()
		s.commonAt = time.Time{}
		s.remembered.Unlock()
	}
	if row.Name == c.row {
		c.swapped, c.refused = c.swapped || done, c.refused || !done
	}
	return done, present, err
}

// place returns the path of a place; "" if there is none.
func (s *store) place(ctx context.Context, conn *zk.Conn, p sight, of casnode.Place) (string, error) {
	at := p.row.rank(of.Waiter) - 1
	if at < 0 {
		var err error
		if p.row, err = within(ctx, func() (stored, error) { return s.list(conn, of.Name) }); err != nil {
			return "", err
		}
		at = p.row.rank(of.Waiter) - 1
	}
	if at < 0 {
		return "", nil
	}
	return s.row(of.Name) + "/" + p.row.queue[at].child, nil
}

// unsent is the error of a Swap that failed before it was sent.
func unsent(err error) error {
	if errors.Is(err, node.ErrUnsent) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}

// multi executes operations, and removes a znode with them, if there is such a one. It
// reports whether it did.
func (s *store) multi(ctx context.Context, conn *zk.Conn, ops []any, drop string, beside func()) (bool, error) {
	for ; ; beside = func() {} {
		every := slices.Clone(ops)
		if drop != "" {
			every = append(every, &zk.DeleteRequest{Path: drop, Version: -1})
		}
		results, err := within(ctx, func() ([]zk.MultiResponse, error) {
			go beside() // which comes to the server after the multi, as it begins after it
			return conn.Multi(every...)
		})
		if err == nil {
			return true, nil
		}
		failed := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
		if failed < 0 { // it was not executed, or nobody knows
			return false, explain(err)
		}
		if failed == len(ops) {
			drop = "" // it has been removed
			continue
		}
		if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNotEmpty) {
			return false, nil
		}
		return false, unsent(explain(err)) // the server has refused it
	}
}
