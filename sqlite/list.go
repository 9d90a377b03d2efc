package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

var _ node.Lister = (*Node)(nil)

const (
	selectBoot query = `SELECT boot FROM meta`

	// ?1 now
	selectHeld query = `SELECT name, value, until, fence, kept_until, token FROM lock WHERE until > ?1`
	// ?1 now
	selectAllHolders query = `SELECT name, value, kind, slot, until, token FROM holder WHERE until > ?1 ORDER BY row`
	// ?1 now
	countWaiters query = `SELECT name, count(*) FROM waiter WHERE lapses > ?1 GROUP BY name`

	// ?1 name, ?2 now, ?3 how many
	selectWaiters query = `
		SELECT ticket, value, kind FROM waiter WHERE name = ?1 AND lapses > ?2
		ORDER BY ticket, kind, value LIMIT ?3`
	// ?1 name, ?2 now
	countNameWaiters query = `SELECT count(*) FROM waiter WHERE name = ?1 AND lapses > ?2`
)

// List calls found for every name that is held or waited for.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	all := map[string]*node.Listing{}
	err := n.view(ctx, func(now int64, wall time.Time, valid bool) error {
		if !valid {
			return nil
		}
		entry := func(name string) *node.Listing {
			if !strings.HasPrefix(name, prefix) {
				return &node.Listing{}
			}
			l := all[name]
			if l == nil {
				l = &node.Listing{Name: name, Reply: node.Reply{Status: node.Absent, Now: wall}}
				all[name] = l
			}
			return l
		}
		err := n.each(countWaiters, []any{now}, func(scan func(...any) error) error {
			var name string
			var count int
			err := scan(&name, &count)
			entry(name).Waiting = count
			return err
		})
		if err != nil {
			return err
		}
		several := map[string]node.Holders{}
		err = n.each(selectAllHolders, []any{now}, func(scan func(...any) error) error {
			var name string
			h, err := scanHolder(scan, &name)
			several[name] = append(several[name], h)
			return err
		})
		if err != nil {
			return err
		}
		return n.each(selectHeld, []any{now}, func(scan func(...any) error) error {
			var name, value string
			var until, fence, keptUntil, token int64
			err := scan(&name, &value, &until, &fence, &keptUntil, &token)
			holders := several[name]
			if len(holders) == 0 {
				holders = node.Holders{{Value: value, Token: node.Token(token), Until: fileTime(until)}}
			}
			l := entry(name)
			l.Reply.Status = node.Held
			if keptUntil > now {
				l.Reply.Fence = node.Token(fence)
			}
			holders.Describe(&l.Reply, node.Share{}, fileTime(now))
			l.Holders = listed(holders, now, wall)
			return err
		})
	})
	if err != nil {
		return n.unsent(err)
	}
	for _, l := range all {
		found(*l)
	}
	return nil
}

// Look returns what the file has about one name.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	l := node.Listing{Name: name, Reply: node.Reply{Status: node.Absent, Now: n.time.wall()}}
	err := n.view(ctx, func(now int64, wall time.Time, valid bool) error {
		t := &tx{n: n, req: node.Request{Op: node.OpInspect, Name: name}, now: now, wall: wall}
		t.listMarks(&l)
		if !valid {
			return t.err
		}
		t.load(false)
		l.Reply, l.Holders = t.reply(t.taken()), listed(t.holders, now, wall)
		t.scan(countNameWaiters, []any{name, now}, &l.Waiting)
		t.each(selectWaiters, []any{name, now, node.MaxWaiters}, func(scan func(...any) error) error {
			var w node.Waiter
			var kind string
			err := scan(&w.Ticket, &w.Value, &kind)
			if err == nil {
				w.Share, err = parseKind(kind)
			}
			l.Waiters = append(l.Waiters, w)
			return err
		})
		return t.err
	})
	if err != nil {
		return node.Listing{}, n.unsent(err)
	}
	return l, nil
}

// view runs do in one transaction that writes nothing. If the file is from
// before the last boot, nothing in it is valid but the marks.
func (n *Node) view(ctx context.Context, do func(now int64, wall time.Time, valid bool) error) error {
	if err := n.enter(ctx); err != nil {
		return err
	}
	defer n.leave()
	if err := n.begin(ctx, beginRead); err != nil {
		return err
	}
	defer n.rollback()
	var boot string
	if _, err := n.queryRow(selectBoot, nil, &boot); err != nil {
		return err
	}
	return do(n.time.elapsed(), n.time.wall(), boot == n.time.boot)
}

// each runs a query and calls row for each of its rows.
func (n *Node) each(q query, args []any, row func(scan func(...any) error) error) error {
	s, err := n.statement(q)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
