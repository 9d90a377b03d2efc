package postgres

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/redlatch/redlatch/internal/sqltable"
	"github.com/redlatch/redlatch/store/casnode"
)

// This file keeps places, in a table of its own: name, ticket and waiter are its key.
// A process that lives has a row there, too, with the empty name, which says until when.
// No write of a place waits for the disk: a place that is lost is put again.

// queue are the statements about places.
type queue struct{ look, put, drop, live statement }

// quick has the statement's transaction not wait for the disk.
const quick = `set_config('synchronous_commit', 'off', true) IS NOT NULL`

// placesOf returns the name of the table of places, quoted.
func placesOf(table string) string { return sqltable.Beside(table, "_place") }

// lives is a condition: the process of the place p lives.
func (s *store) lives() string {
	return fmt.Sprintf("EXISTS (SELECT 1 FROM %s a WHERE a.name = '' AND a.ticket = 0 AND a.waiter = p.process AND a.lapses > %s)", s.places, now)
}

// first returns the first places of a name, a row for each.
func (s *store) first(name, but string) string {
	return fmt.Sprintf(`SELECT p.ticket, p.waiter, p.process FROM %s p WHERE p.name = decode(%s, 'hex') AND %s%s
		ORDER BY p.ticket, p.waiter LIMIT %d`, s.places, name, s.lives(), but, casnode.FirstPlaces)
}

// firstText returns them as one text.
func (s *store) firstText(name, but string) string {
	return `SELECT string_agg(f.ticket || ' ' || f.waiter || ' ' || f.process, ',' ORDER BY f.ticket, f.waiter) FROM (` + s.first(name, but) + `) f`
}

func (s *store) statements() queue {
	return queue{
		look: named("(text)", s.first("$1", "")),
		put: named("(text, bigint, text, text)", fmt.Sprintf(`INSERT INTO %s (name, ticket, waiter, process, lapses)
			SELECT decode($1, 'hex'), $2::bigint, $3, $4, 0 WHERE %s ON CONFLICT DO NOTHING`, s.places, quick)),
		drop: named("(text, bigint, text)", fmt.Sprintf(`DELETE FROM %s WHERE name = decode($1, 'hex') AND ticket = $2::bigint AND waiter = $3 AND %s`, s.places, quick)),
		live: named("(text)", fmt.Sprintf(`WITH old AS (SELECT lapses FROM %[1]s WHERE name = '' AND ticket = 0 AND waiter = $1), put AS (
			INSERT INTO %[1]s (name, ticket, waiter, process, lapses) SELECT '', 0, $1, $1, %[2]s + %[3]d WHERE %[4]s
			ON CONFLICT (name, ticket, waiter) DO UPDATE SET lapses = excluded.lapses) SELECT count(*) FROM old WHERE lapses > %[2]s`,
			s.places, now, casnode.PlaceLease.Microseconds(), quick)),
	}
}

// placed are the values that say which place it is.
func placed(p casnode.Place) []string {
	return []string{hexed(p.Name), strconv.FormatInt(p.Ticket, 10), p.Waiter}
}

// Put stores a place. One that was stored before is there, most of the time: then it is
// only read.
func (s *store) Put(ctx context.Context, p casnode.Place, again bool) (casnode.Snapshot, error) {
	read := call{statement: s.texts[kind{read: true, rank: true}], values: placed(p)}
	if again {
		results, err := s.run(ctx, read)
		if err != nil {
			return casnode.Snapshot{}, explain(err)
		}
		if rows := results[0].Rows; len(rows) == 1 && string(rows[0][8]) == "1" {
			return s.snapshot(ctx, read, p.Name, rows)
		}
	}
	return s.after(ctx, read, p.Name, call{statement: s.put, values: append(placed(p), p.Process)})
}

// Drop removes a place.
func (s *store) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	return s.after(ctx, s.readOf(p.Name), p.Name, call{statement: s.drop, values: placed(p)})
}

// Evict removes the places of a process, or of all that do not live.
func (s *store) Evict(ctx context.Context, name, process string) error {
	which := "NOT " + s.lives()
	if process != "" {
		which = fmt.Sprintf("p.name = %s AND p.process = %s", bytea(name), quoted(process))
	}
	_, err := s.query(ctx, fmt.Sprintf("DELETE FROM %s p WHERE %s AND %s", s.places, which, quick))
	return explain(err)
}

// Live has a process live for a while.
func (s *store) Live(ctx context.Context, process string) (bool, error) {
	results, err := s.run(ctx, call{statement: s.live, values: []string{process}})
	if err != nil {
		return false, explain(err)
	}
	return string(results[0].Rows[0][0]) == "1", nil
}

// Places returns the places of a name, or of all.
func (s *store) Places(ctx context.Context, name string) (all []casnode.Place, err error) {
	which := "p.name <> ''"
	if name != "" {
		which = "p.name = " + bytea(name)
	}
	rows, err := s.query(ctx, fmt.Sprintf(`SELECT encode(p.name, 'hex'), p.ticket, p.waiter, p.process FROM %s p WHERE %s AND %s ORDER BY p.name, p.ticket, p.waiter`,
		s.places, which, s.lives()))
	if err != nil {
		return nil, explain(err)
	}
	for _, row := range rows {
		r, err := parseRow("", nil, row[0])
		if err != nil {
			return nil, err
		}
		p, err := parsePlaces(string(r.State), [][][]byte{row[1:]})
		if err != nil {
			return nil, err
		}
		all = append(all, p...)
	}
	return all, nil
}

// parsePlaces reads the rows of first.
func parsePlaces(name string, rows [][][]byte) (all []casnode.Place, err error) {
	for _, row := range rows {
		if len(row) != 3 {
			return nil, fmt.Errorf("a place is damaged: %w", errShape)
		}
		p := casnode.Place{Name: name, Waiter: string(row[1]), Process: string(row[2])}
		if p.Ticket, err = strconv.ParseInt(string(row[0]), 10, 64); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// parseText reads firstText.
func parseText(name string, text []byte) ([]casnode.Place, error) {
	var rows [][][]byte
	for one := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		rows = append(rows, bytes.Split(one, []byte(" ")))
	}
	return parsePlaces(name, rows)
}
