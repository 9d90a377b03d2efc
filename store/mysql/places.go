package mysql

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/sqltable"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file keeps places, in a table of its own: name, ticket and waiter are its key.
// A process that lives has a row there, too, with the empty name, which says until when.
// Places are written one by one, by their whole keys: a statement for several locks the
// gaps between them, too, and two such statements can deadlock.

// placesOf returns the name of the table of places, quoted.
func placesOf(table string) string { return sqltable.Beside(table, "_place") }

// page is how many places are read at a time.
const page = 50

// line returns the first places of a name whose processes live, and the rank of a place
// if there is one, and whether it is there. A crowd that leaves at once takes a while: a
// place whose caller's time is over is left out if there are others, or the name would be
// kept for those who leave, one after the other, until all have left. Its statements wait for no lock, so they have
// no limit, which takes MariaDB as long as the rest of them.
func (s *store) line(ctx context.Context, c session, p casnode.Place) (first []casnode.Place, rank int, there bool, err error) {
	if p.Name == casnode.MarkerName {
		return nil, 0, false, nil
	}
	var over, all []casnode.Place // whose callers leave just now; all that live and were seen
	dead := map[string]bool{}
	from, name := s.fronts.from(p), []byte(p.Name)
	for read := 0; ; {
		var rows []casnode.Place
		var now int64
		next := casnode.Place{Name: p.Name}
		err = query(ctx, c, c.queue, []any{name, from, page, read}, []any{&now, &next.Ticket, &next.Waiter, &next.Process},
			func() { rows = append(rows, next) })
		if err != nil {
			return nil, 0, false, err
		}
		for i, next := range rows {
			if next.Waiter == p.Waiter && next.Ticket == p.Ticket {
				rank, there = read+i+1, true
			}
			if len(first) < casnode.FirstPlaces && !dead[next.Process] {
				lives, err := s.lives(ctx, c, next, now)
				if err != nil {
					return nil, 0, false, err
				}
				switch dead[next.Process] = !lives; {
				case !lives:
					continue
				case next.Over(time.UnixMicro(now)):
					over = append(over, next)
				default:
					first = append(first, next)
				}
				all = append(all, next)
			}
		}
		if read += len(rows); len(rows) < page || len(first) == casnode.FirstPlaces {
			break
		}
	}
	if len(first) == 0 {
		first = over[:min(len(over), casnode.FirstPlaces)]
	}
	s.fronts.saw(p.Name, all)
	if p.Waiter != "" && !there {
		err = explain(c.QueryRowContext(ctx, c.texts.rank, p.Ticket, p.Waiter, name, p.Ticket, p.Ticket, p.Waiter).Scan(&rank, &there))
	}
	return first, rank, there, err
}

// lives reports whether the process of a place lives. It lives for as long as it was seen
// to once, at least. When the place was put, half of its lease was left.
func (s *store) lives(ctx context.Context, c session, p casnode.Place, now int64) (bool, error) {
	if age := now - p.Ticket; age >= 0 && age < casnode.PlaceLease.Microseconds()/2 {
		return true, nil
	}
	if until, ok := s.lapses.Load(p.Process); ok && until.(int64) > now {
		return true, nil
	}
	var until int64
	err := c.QueryRowContext(ctx, c.texts.lapses, p.Process).Scan(&until)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case until > now:
		s.lapses.Store(p.Process, until)
	}
	return until > now, explain(err)
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
	c, ctx, err := s.enter(ctx)
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
	c, ctx, err := s.enter(ctx)
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err = c.remove(ctx, p, 0); err != nil {
		return r, err
	}
	if r, err = s.readRow(ctx, c, p.Name); err == nil && r.Passes(p) {
		r.Places, _, _, err = s.line(ctx, c, casnode.Place{Name: p.Name})
	}
	return r, err
}

// Evict removes the places of a process, or of all that do not live.
func (s *store) Evict(ctx context.Context, name, process string) error {
	c, ctx, err := s.enter(ctx)
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
	c, ctx, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	s.lapses.Delete(process)
	n, err := c.change(ctx, c.renew, process)
	if err == nil && n == 0 {
		_, err = c.change(ctx, c.live, process, process)
	}
	return n > 0, err
}

// Places returns the places of a name, or of all.
func (s *store) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	c, ctx, err := s.enter(ctx)
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

// fronts are where the queues of names begin. The server purges places that are removed
// a while later, and until then a scan of a name passes over all of them. So where a
// queue moves, a scan begins with the place that was the first a moment ago, and once a
// second at the very beginning: a place may come late, under an old ticket.
type fronts struct {
	mu    sync.Mutex
	names map[string]*front
}

type front struct {
	ticket int64     // of the first place
	moves  int       // of the queue, since the last whole scan
	whole  time.Time // the last whole scan
}

const (
	// wholeAfter is how often a whole name is scanned, once its queue has moved more often
	// than mostMoves since.
	wholeAfter, mostMoves = time.Second, 3
	// mostFronts is of how many names the front is remembered.
	mostFronts = 1024
)

// from returns the ticket with which a scan for a place begins.
func (f *fronts) from(p casnode.Place) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.names[p.Name]
	if n == nil {
		return 0
	}
	if time.Since(n.whole) > wholeAfter {
		n.moves, n.whole = 0, time.Now()
		return 0
	}
	switch {
	case n.moves < mostMoves:
		return 0
	case p.Waiter != "":
		return min(n.ticket, p.Ticket)
	}
	return n.ticket
}

// saw notes the first places.
func (f *fronts) saw(name string, first []casnode.Place) {
	if len(first) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.names) >= mostFronts || f.names == nil {
		f.names = map[string]*front{}
	}
	n := f.names[name]
	if n == nil {
		n = new(front)
		f.names[name] = n
	}
	if first[0].Ticket > n.ticket {
		n.moves++
	}
	n.ticket = first[0].Ticket
}
