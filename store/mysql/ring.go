package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
)

// This file wakes a process. The server has no notifications, but a statement can be
// ended by another session of the same user. So a process that waits keeps a session that
// sleeps, and has a named lock, by which others find it.

const (
	// nap is how long it sleeps at a time. A session whose process has gone sleeps on.
	nap = 3 * time.Second
	// napLimit is how long a nap may take, the wait for the named lock before it
	// included, or anything else in that session.
	napLimit = 2*nap + 2*time.Second
	// rouse is how long it takes to see whether a ring arrives.
	rouse = 2 * time.Second
)

// bell is the named lock of a process.
func bell(process string) string { return "'redlatch " + process + "'" }

// ring wakes a process, and reports whether it will look at the row: it does if it has its
// bell. If it does not sleep, it is about to.
func (c session) ring(ctx context.Context, process string) bool {
	_, err := c.ExecContext(ctx, "KILL QUERY IS_USED_LOCK("+bell(process)+")")
	return err == nil
}

// doze is an expression that takes a time. MariaDB guards all that SLEEP by one mutex, for
// which KILL waits up to 2 s. So one session of all sleeps, and has a named lock, for
// which the others wait.
func doze(d time.Duration) string {
	return fmt.Sprintf("IF(GET_LOCK('redlatch', %g), SLEEP(%[1]g), 0)", d.Seconds())
}

var errDeaf = errors.New("KILL QUERY does not reach another session of this user")

// Ring has the session of a process sleep until it is woken, and looks at the rows then.
//
// A ring that comes while the session does not sleep is lost. So it falls asleep in a
// statement that first compares the rows with those that were seen: a SELECT, as others
// lock what they read, and of what is not committed, or the server would purge nothing.
// A row whose waiter was just woken is not compared: that one writes it now.
func (s *store) Ring(ctx context.Context, process string, ready func(), watching func() []casnode.Row, rang func(casnode.Row) bool) error {
	p := s.prepared.Load()
	if p == nil {
		return casnode.ErrUnprepared
	}
	limited, cancel := context.WithTimeout(ctx, napLimit)
	defer cancel()
	conn, err := s.db.Conn(limited)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer drop(conn)
	if err := s.hang(limited, session{prepared: p, Conn: conn}, process); err != nil {
		return err
	}
	for ready(); ; {
		var names []any
		known := map[string]string{}
		for _, r := range watching() {
			names = append(names, []byte(r.Name))
			known[r.Name] = r.Version
		}
		woken, r := map[string]bool{}, casnode.Row{}
		if len(names) > 0 {
			err := query(ctx, conn, "SELECT name, version, state FROM "+s.table+" WHERE name IN (?"+strings.Repeat(", ?", len(names)-1)+")", names,
				[]any{&r.Name, &r.Version, &r.State}, func() {
					if r.Version != known[r.Name] {
						woken[r.Name] = rang(r)
					}
				})
			if number(err) == interrupted {
				continue
			} else if err != nil {
				return err
			}
		}
		rows := slices.DeleteFunc(watching(), func(r casnode.Row) bool { return woken[r.Name] })
		if err := s.sleep(ctx, conn, rows); err != nil {
			return err
		}
	}
}

// hang takes the named lock, and sees whether a ring arrives.
func (s *store) hang(ctx context.Context, c session, process string) error {
	var got sql.NullInt64
	if _, err := c.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"); err != nil {
		return err
	}
	if err := c.QueryRowContext(ctx, "SELECT GET_LOCK("+bell(process)+", 0)").Scan(&got); err != nil || got.Int64 != 1 {
		return fmt.Errorf("the named lock %s cannot be had: %w", bell(process), errors.Join(err, errDeaf))
	}
	ctx, cancel := context.WithTimeout(ctx, rouse)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(rouse / 100)
			if other, _, err := s.enter(ctx); err == nil {
				other.ring(ctx, process)
				other.Close()
			}
		}
	}()
	begun := time.Now()
	err := c.QueryRowContext(ctx, "SELECT "+doze(rouse*9/10)).Scan(&got)
	if number(err) != interrupted && err != nil || time.Since(begun) > rouse/2 {
		return errors.Join(err, errDeaf)
	}
	return nil
}

// sleep sleeps until somebody rings, unless a row has changed.
func (s *store) sleep(ctx context.Context, conn *sql.Conn, rows []casnode.Row) error {
	ctx, cancel := context.WithTimeout(ctx, napLimit)
	defer cancel()
	var same []string
	var args []any
	for _, r := range rows {
		if r.Version != "" {
			same, args = append(same, "name = ? AND version = ?"), append(args, []byte(r.Name), r.Version)
		}
	}
	text := "SELECT " + doze(nap)
	if len(same) > 0 {
		text = fmt.Sprintf("SELECT IF((SELECT COUNT(*) FROM %s WHERE %s) = %d, %s, 0)", s.table, strings.Join(same, " OR "), len(same), doze(nap))
	}
	var woken sql.NullInt64
	if err := conn.QueryRowContext(ctx, text, args...).Scan(&woken); number(err) != interrupted {
		return err
	}
	return nil
}
