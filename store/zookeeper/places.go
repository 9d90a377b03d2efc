package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file has places. A place is an ephemeral znode, a child of the row of its name,
// and its own name says all: who waits, in which process, with which ticket, and the
// number that the server gave it. So the children of a row are its queue, and its
// timers, which have no dot in their names. That a row was read together with its
// children shows in the version that comes with them.
//
// A place needs a row to be below. Where there is none yet, it is below an empty one,
// which is no row: it has no version. A row is never removed while it has children.

// ticket is a place as a znode: its name, and its number.
type ticket struct {
	child  string
	number int32
}

// noRow is the data of a znode that has only places.
var noRow = []byte{0}

// children sets the timers and the places of a row.
func (r *stored) children(names []string) {
	for _, child := range names {
		dot := strings.LastIndexByte(child, '.')
		if dot < 0 {
			r.Timers = append(r.Timers, child)
		} else if number, err := strconv.ParseInt(child[dot+1:], 10, 32); err == nil {
			r.queue = append(r.queue, ticket{child, int32(number)})
		}
	}
	// After 2³¹ places the number goes on below zero.
	slices.SortFunc(r.queue, func(a, b ticket) int { return cmp.Compare(a.number-b.number, 0) })
}

// rank returns the rank of a waiter's place; 0 if it has none.
func (r *stored) rank(waiter string) int {
	return slices.IndexFunc(r.queue, func(t ticket) bool { return waiter != "" && t.of(waiter) }) + 1
}

// of reports whether a place is that of a waiter.
func (t ticket) of(waiter string) bool {
	rest, ok := strings.CutPrefix(t.child, waiter)
	return ok && rest[0] == '.'
}

// parse returns the place; false if somebody else has put something there.
func (t ticket) parse(name string) (p casnode.Place, ok bool) {
	parts := strings.Split(t.child, ".")
	if len(parts) != 4 {
		return p, false
	}
	at, err := strconv.ParseInt(parts[2], 36, 64)
	return casnode.Place{Name: name, Waiter: parts[0], Process: parts[1], Ticket: at}, err == nil
}

// places returns the first limit places.
func (r *stored) places(limit int) (all []casnode.Place) {
	for _, t := range r.queue {
		if len(all) == limit {
			break
		}
		if p, ok := t.parse(r.Name); ok {
			all = append(all, p)
		}
	}
	return all
}

// list reads the children of a row, and returns the version of its znode.
func (s *store) list(conn *zk.Conn, name string) (r stored, err error) {
	r.Name = name
	names, stat, err := conn.Children(s.row(name))
	if errors.Is(err, zk.ErrNoNode) {
		return r, nil // it was removed, and its children before
	}
	if err != nil {
		return r, err
	}
	r.moved = stat.Pzxid
	r.children(names)
	return r, nil
}

// Put creates a place, if it is not there, and reads after that, in the same session.
// After an error, or in another session, it may be there or not.
func (s *store) Put(ctx context.Context, p casnode.Place, again bool) (casnode.Snapshot, error) {
	look := s.puts(p) || again
	c := callOf(ctx)
	at, err := inSession(ctx, &s.link, func(conn *zk.Conn) (sight, error) {
		if look {
			if at, err := s.readIn(conn, p.Name, c); err != nil || at.row.rank(p.Waiter) > 0 {
				return at, err
			}
		}
		look = true
		if err := s.create(conn, p); err != nil {
			return sight{}, err
		}
		c.queued, c.brief = true, true // what this server shows now is from after the write
		defer func() { c.brief = false }()
		return s.readIn(conn, p.Name, c)
	})
	if err != nil {
		return casnode.Snapshot{}, explain(err)
	}
	seen := s.snapshot(p.Name, at, p.Waiter)
	seen.Rank = cmp.Or(seen.Rank, at.row.many)
	return seen, nil
}

// puts notes that a place is put, and reports whether it may be there already: it was
// noted, and not removed since.
func (s *store) puts(p casnode.Place) (before bool) {
	s.remembered.Lock()
	defer s.remembered.Unlock()
	key := [2]string{p.Name, p.Waiter}
	child, before := s.own[key]
	if len(s.own) >= mostSights {
		clear(s.own)
	}
	s.own[key] = child
	return before
}

func (s *store) dropped(p casnode.Place) {
	s.remembered.Lock()
	defer s.remembered.Unlock()
	delete(s.own, [2]string{p.Name, p.Waiter})
}

// create creates a place, and what it is below.
func (s *store) create(conn *zk.Conn, p casnode.Place) error {
	for {
		child := p.Waiter + "." + p.Process + "." + strconv.FormatInt(p.Ticket, 36) + "."
		at, err := conn.Create(s.row(p.Name)+"/"+child, nil, zk.FlagEphemeral|zk.FlagSequence, s.acl)
		if !errors.Is(err, zk.ErrNoNode) {
			s.remembered.Lock()
			defer s.remembered.Unlock()
			s.own[[2]string{p.Name, p.Waiter}] = at
			return err
		}
		if _, err = conn.Create(s.row(p.Name), noRow, 0, s.acl); errors.Is(err, zk.ErrNoNode) {
			return s.unprepared(s.root + rowsPath)
		}
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
}

// Drop removes the places of a waiter.
func (s *store) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	at, err := inSession(ctx, &s.link, func(conn *zk.Conn) (sight, error) {
		if err := s.remove(conn, p.Name, func(t ticket) bool { return t.of(p.Waiter) }); err != nil {
			return sight{}, err
		}
		return s.readIn(conn, p.Name, callOf(ctx))
	})
	if err != nil {
		return casnode.Snapshot{}, explain(err)
	}
	s.dropped(p)
	return s.snapshot(p.Name, at, ""), nil
}

// Evict removes the places of a process for a name. Those of processes that do not live
// end with their sessions.
func (s *store) Evict(ctx context.Context, name, process string) error {
	if process == "" {
		return nil
	}
	_, err := inSession(ctx, &s.link, func(conn *zk.Conn) (struct{}, error) {
		return struct{}{}, s.remove(conn, name, func(t ticket) bool {
			p, ok := t.parse(name)
			return ok && p.Process == process
		})
	})
	return explain(err)
}

// remove removes the places of a name that are such.
func (s *store) remove(conn *zk.Conn, name string, such func(ticket) bool) error {
	r, err := s.list(conn, name)
	if err != nil {
		return err
	}
	for _, t := range r.queue {
		if !such(t) {
			continue
		}
		if err := conn.Delete(s.row(name)+"/"+t.child, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}

// Live reports whether the session is the one of the last call: places end with it.
func (s *store) Live(ctx context.Context, process string) (bool, error) {
	conn, err := s.session(ctx)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return false, err
	}
	s.remembered.Lock()
	defer s.remembered.Unlock()
	before := s.lived[process]
	s.lived[process] = conn.SessionID()
	return s.lived[process] == before, nil
}

// Places returns the places of a name, or of all.
func (s *store) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	all, err := inSession(ctx, &s.link, func(conn *zk.Conn) (all []casnode.Place, err error) {
		names := []string{name}
		if name == "" {
			names, err = s.names(ctx, conn, "")
		} else {
			err = s.advance(ctx, conn)
		}
		if err != nil {
			return nil, err
		}
		znodes, err := s.getAll(conn, names)
		for i := 0; i < len(names) && err == nil; i++ {
			if z := znodes[i]; z.stat != nil && z.stat.NumChildren > 0 {
				var r stored
				r, err = s.list(conn, names[i])
				all = append(all, r.places(len(r.queue))...)
			}
		}
		return all, err
	})
	return all, explain(err)
}
