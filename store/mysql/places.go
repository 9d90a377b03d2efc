package mysql

import (
	"cmp"
	"context"
	"strings"

	"github.com/redlatch/redlatch/internal/sqltable"
	"github.com/redlatch/redlatch/node/casnode"
)

// This file keeps places, in a table of its own: name, ticket and waiter are its key.
// A process that lives has a row there, too, with the empty name, which says until when.
// Places are written one by one, by their whole keys: a statement for several locks the
// gaps between them, too, and two such statements can deadlock.

// placesOf returns the name of the table of places, quoted.
func placesOf(table string) string { return sqltable.Beside(table, "_place") }

func inOrder(p, q casnode.Place) int {
	return cmp.Or(cmp.Compare(p.Ticket, q.Ticket), strings.Compare(p.Waiter, q.Waiter))
}

// change executes a statement about a place, and returns how many rows it has changed.
func (c session) change(ctx context.Context, text string, args ...any) (n int64, err error) {
	for range 3 {
		res, err := c.exec(ctx, text, args...)
		switch number(err) {
		case deadlock, recordChanged:
			continue
		case duplicate:
			return 0, nil
		}
		if err != nil {
			return 0, explain(err)
		}
		return res.RowsAffected()
	}
	return 0, errBetween
}

// remove removes a place, or the row of a process that lapses then.
func (c session) remove(ctx context.Context, p casnode.Place, lapses int64) error {
	_, err := c.change(ctx, c.drop, []byte(p.Name), p.Ticket, p.Waiter, lapses)
	return err
}

// Put stores a place. One that was stored before is there, most of the time: then it is
// only read.
func (s *store) Put(ctx context.Context, p casnode.Place, again bool) (r casnode.Snapshot, err error) {
	c, err := s.enter(ctx)
	if err != nil {
		return r, err
	}
	defer c.Close()
	if again {
		if r, there, err := s.read(ctx, c, p); there || err != nil {
			return r, err
		}
	}
	if _, err = c.change(ctx, c.put, []byte(p.Name), p.Ticket, p.Waiter, p.Process); err != nil {
		return r, err
	}
	r, _, err = s.read(ctx, c, p)
	return r, err
}

// Drop removes a place.
func (s *store) Drop(ctx context.Context, p casnode.Place) (r casnode.Snapshot, err error) {
	c, err := s.enter(ctx)
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err = c.remove(ctx, p, 0); err != nil {
		return r, err
	}
	r, _, err = s.read(ctx, c, p)
	return r, err
}

// Evict removes the places of a process, or of all that do not live.
func (s *store) Evict(ctx context.Context, name, process string) error {
	c, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	text, args := c.ofDead, []any(nil)
	if process != "" {
		text, args = c.ofProcess, []any{[]byte(name), process}
	}
	all, lapses, err := c.places(ctx, text, args...)
	for i := 0; err == nil && i < len(all); i++ {
		err = c.remove(ctx, all[i], lapses[i])
	}
	return err
}

// Live has a process live for a while.
func (s *store) Live(ctx context.Context, process string) (bool, error) {
	c, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	n, err := c.change(ctx, c.renew, process)
	if err == nil && n == 0 {
		_, err = c.change(ctx, c.live, process, process)
	}
	return n > 0, err
}

// Places returns the places of a name, or of all.
func (s *store) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	c, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var one any
	if name != "" {
		one = []byte(name)
	}
	all, _, err := c.places(ctx, c.list, one)
	return all, err
}

// places returns those that a query finds, and when they lapse.
func (c session) places(ctx context.Context, text string, args ...any) (all []casnode.Place, lapses []int64, err error) {
	var p casnode.Place
	var until int64
	err = query(ctx, c, c.limit(ctx, text), args, []any{&p.Name, &p.Ticket, &p.Waiter, &p.Process, &until}, func() {
		all, lapses = append(all, p), append(lapses, until)
	})
	return all, lapses, err
}
