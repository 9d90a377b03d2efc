package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// Swap writes a row by a multi, which checks identity, floor, marker and row.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, row casnode.Row, wakes []string) (bool, error) {
	p, ok, err := s.place(ctx, row.Name, seen)
	if err != nil {
		return false, unsent(explain(err))
	}
	c := callOf(ctx)
	if !ok {
		c.refused = true
		return false, nil
	}
	conn, err := s.session(ctx)
	if err != nil {
		return false, err
	}
	names := p.row.book
	if row.Name == c.row() {
		names = names.with(c.req, s.inbox.id())
	}
	data := encode(row.Version, names, row.State)
	ops := []any{
		&zk.CheckVersionRequest{Path: s.root + identityPath + "/" + seen.Server, Version: -1},
		&zk.CheckVersionRequest{Path: s.root + floorPath, Version: p.floorAt},
	}
	if row.Name != casnode.MarkerName {
		ops = append(ops, &zk.CheckVersionRequest{Path: s.root + markerPath, Version: p.marker.at})
	}
	if p.row.Version == "" {
		ops = append(ops, &zk.CreateRequest{Path: s.row(row.Name), Data: data, Acl: s.acl})
	} else {
		ops = append(ops, &zk.SetDataRequest{Path: s.row(row.Name), Data: data, Version: p.row.at})
	}
	size := len(data) + len(s.row(row.Name)) + 1024
	if size > s.opts.MaxBuffer {
		return false, fmt.Errorf("the row of %q has %d bytes, %w (%w)", row.Name, len(data), ErrTooLarge, node.ErrUnsent)
	}
	mail, err := s.address(ctx, conn, p.row.book, wakes)
	if err != nil {
		return false, unsent(explain(err))
	}
	for i, l := range mail { // those that do not fit are lost
		if size += 2*len(l) + 200; size > s.opts.MaxBuffer {
			mail = mail[:i]
			break
		}
	}
	done, err := s.multi(ctx, conn, ops, mail)
	if done && row.Name != casnode.MarkerName {
		// The next Swap may come without a Read. A znode that is written has the next
		// version, and a new one has version 0.
		p.row = stored{Row: row, book: names, at: p.row.at + 1}
		if seen.Row.Version == "" {
			p.row.at = 0
		}
		s.remember(row.Name, p)
	}
	if row.Name == c.row() {
		c.swapped, c.refused = done, c.refused || !done
	}
	return done, err
}

// unsent is the error of a Swap that failed before it was sent.
func unsent(err error) error {
	if errors.Is(err, node.ErrUnsent) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}

// multi executes operations, and sends mail with them, as far as it can be delivered.
// It reports whether the operations were executed.
func (s *store) multi(ctx context.Context, conn *zk.Conn, ops []any, mail []string) (bool, error) {
	for {
		every := slices.Clone(ops)
		for _, l := range mail {
			every = append(every, &zk.CheckVersionRequest{Path: path.Dir(l) + "/" + owner, Version: -1}, &zk.CreateRequest{Path: l, Acl: s.acl, Flags: zk.FlagEphemeralSequential})
		}
		results, err := within(ctx, func() ([]zk.MultiResponse, error) { return conn.Multi(every...) })
		if err == nil {
			return true, nil
		}
		failed := slices.IndexFunc(results, func(r zk.MultiResponse) bool { return r.Error != nil })
		if failed < 0 { // it was not executed, or nobody knows
			return false, explain(err)
		}
		if failed >= len(ops) {
			gone := path.Dir(mail[(failed-len(ops))/2]) // the inbox of a process that has ended
			go clearInbox(conn, gone)
			mail = slices.DeleteFunc(slices.Clone(mail), func(l string) bool { return path.Dir(l) == gone })
			continue
		}
		if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNotEmpty) {
			return false, nil
		}
		return false, unsent(explain(err)) // the server has refused it
	}
}
