package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// Swap writes a row by a multi, which checks identity, floor, marker and row, removes the
// place and delivers the wakes. If places are needed, and none are known, they are read
// after it.
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
	queue := slices.DeleteFunc(slices.Clone(p.row.queue), func(t ticket) bool { return w.Drop != nil && t.of(w.Drop.Waiter) })
	for _, wake := range w.Wakes {
		letter := s.letter(wake, row.Version, at, queue)
		if size += 2*len(letter) + 1024; wake.Process != "" && size < s.opts.MaxBuffer { // else it is lost
			ops = append(ops, s.deliver(letter)...)
		}
	}
	drop := ""
	if w.Drop != nil {
		if drop, err = s.place(ctx, conn, *w.Drop); err != nil {
			return false, present, unsent(explain(err))
		}
	}
	look := w.Look && (!w.Near || len(queue) == 0)
	for _, wake := range w.Wakes {
		if i := p.row.rank(wake.Waiter) - 1; look && i >= 0 && w.Drop == nil {
			// The row is kept for a place that there is then: who leaves it later sees that.
			ops = append(ops, &zk.CheckVersionRequest{Path: s.row(row.Name) + "/" + p.row.queue[i].child, Version: -1})
			look = false
		}
	}
	done, err := s.multi(ctx, conn, ops, drop)
	if done && w.Drop != nil {
		s.dropped(*w.Drop)
	}
	if done && row.Name != casnode.MarkerName {
		// The next Swap may come without a Read.
		p.row.Row, p.row.at, p.row.queue = row, at, queue
		if look {
			r, _ := inSession(ctx, &s.link, func(conn *zk.Conn) (stored, error) { return s.list(conn, row.Name) })
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
func (s *store) place(ctx context.Context, conn *zk.Conn, of casnode.Place) (string, error) {
	s.remembered.Lock()
	own := s.own[[2]string{of.Name, of.Waiter}]
	s.remembered.Unlock()
	if own != "" {
		return own, nil
	}
	r, err := within(ctx, func() (stored, error) { return s.list(conn, of.Name) })
	if at := r.rank(of.Waiter) - 1; err == nil && at >= 0 {
		own = s.row(of.Name) + "/" + r.queue[at].child
	}
	return own, err
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
func (s *store) multi(ctx context.Context, conn *zk.Conn, ops []any, drop string) (bool, error) {
	for {
		every := slices.Clone(ops)
		if drop != "" {
			every = append(every, &zk.DeleteRequest{Path: drop, Version: -1})
		}
		results, err := within(ctx, func() ([]zk.MultiResponse, error) { return conn.Multi(every...) })
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
