package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// store is the table.
type store struct {
	db            *sql.DB
	own           bool // close the database
	name          string
	table, places string // quoted
	// prepared is what Prepare found out; nil if it must look again.
	prepared atomic.Pointer[prepared]
	fronts   fronts
	lapses   sync.Map // until when processes live, by the server's clock
}

// prepared is what is known about the server and its table.
type prepared struct {
	*dialect
	texts
	id  string // the server's identity
	fit string // the expression of fitness for it
	// blind says that the user may not see whether replication is set up.
	blind bool
}

const (
	// slack is how much longer a statement has than its caller, and how much longer still
	// the server gets for it. The driver closes a connection whose statement is given up,
	// and to open one costs more than several statements: callers that wait for a short
	// time would load the server with that.
	slack = 200 * time.Millisecond
	// longest is how long a statement may take whose caller has no limit.
	longest = time.Minute
	// waitAtMost is how long a session of our own waits for a lock, on a server
	// that cannot limit one statement.
	waitAtMost = 5 * time.Second
)

// session is a connection of the pool, and what is known about its server.
type session struct {
	*prepared
	*sql.Conn
	end context.CancelFunc
}

// enter returns a session on a server that is prepared, and the context of its
// statements.
func (s *store) enter(ctx context.Context) (c session, own context.Context, err error) {
	if c.prepared = s.prepared.Load(); c.prepared == nil {
		return c, ctx, casnode.ErrUnprepared
	}
	if c.Conn, err = s.conn(ctx); err != nil {
		return c, ctx, err
	}
	own, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if end, ok := ctx.Deadline(); ok {
		own, c.end = context.WithDeadline(context.WithoutCancel(ctx), end.Add(slack))
	}
	cancel := c.end
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(slack, cancel) })
	c.end = func() { stop(); cancel() }
	return c, own, nil
}

// Close returns the connection to the pool.
func (c session) Close() error {
	c.end()
	return c.Conn.Close()
}

// limit returns a statement that the server ends soon after the context ends. The
// driver closes the connection then, which the server notices only when the
// statement has ended. There are few limits, each twice the one before, since a
// statement that is prepared has one text.
func (c session) limit(ctx context.Context, text string) string {
	left, after := longest, slack
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end)+slack)
	}
	for after < left {
		after *= 2
	}
	return c.limited(text, after)
}

func (c session) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	return c.ExecContext(ctx, c.limit(ctx, text), args...)
}

func (c session) queryRow(ctx context.Context, text string, args ...any) *sql.Row {
	return c.QueryRowContext(ctx, c.limit(ctx, text), args...)
}

// queryer is a connection or a pool.
type queryer interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// query calls each for every row of an answer, which is in to then.
func query(ctx context.Context, q queryer, text string, args, to []any, each func()) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return explain(err)
		}
		each()
	}
	return explain(rows.Err())
}

// conn returns a connection of the pool. Waiting for one is not the server's
// silence, and has an error of its own.
func (s *store) conn(ctx context.Context) (*sql.Conn, error) {
	c, err := s.db.Conn(ctx)
	if err == nil {
		return c, nil
	}
	if pool := s.db.Stats(); ctx.Err() != nil && pool.MaxOpenConnections > 0 && pool.InUse >= pool.MaxOpenConnections {
		return nil, fmt.Errorf("all %d connections of this program's pool are in use (%w)", pool.MaxOpenConnections, node.ErrUnsent)
	}
	return nil, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}

func (s *store) Read(ctx context.Context, name string) (r casnode.Snapshot, err error) {
	c, ctx, err := s.enter(ctx)
	if err != nil {
		return r, err
	}
	defer c.Close()
	r, _, err = s.read(ctx, c, casnode.Place{Name: name})
	return r, err
}

// read reads the row of a place, and reports whether the place is there.
//
// Each statement has a snapshot of its own, whatever the isolation: it is a transaction
// of its own, or refused. So it sees what was committed before it.
func (s *store) read(ctx context.Context, c session, p casnode.Place) (r casnode.Snapshot, there bool, err error) {
	places, rank, there, err := s.line(ctx, c, p)
	if err == nil {
		r, err = s.readRow(ctx, c, p.Name)
	}
	r.Places, r.Rank = places, rank
	return r, there, err
}

// readRow reads a row without its queue.
func (s *store) readRow(ctx context.Context, c session, name string) (r casnode.Snapshot, err error) {
	var now, later int64 // microseconds
	var fitness string
	var version sql.NullString
	begun := time.Now()
	err = c.queryRow(ctx, c.texts.read, []byte(name)).
		Scan(&now, &later, &r.Server, &fitness, &version, &r.Row.State, &r.Marker.Version, &r.Marker.State)
	if errors.Is(err, sql.ErrNoRows) { // nor is the session's fitness known
		rollBack(ctx, c.Conn)
		return r, fmt.Errorf("the table has been emptied: %w", casnode.ErrUnprepared)
	} else if err != nil {
		return r, explain(err)
	}
	if fitness == "fit" && !checkClock(time.Duration(later)*time.Microsecond, time.Since(begun)) {
		fitness = "timestamp"
	}
	if err := s.checkFitness(ctx, c.Conn, fitness); err != nil {
		return r, err
	}
	r.Now = time.UnixMicro(now).UTC()
	r.Row.Name, r.Row.Version = name, version.String
	r.Marker.Name = casnode.MarkerName
	if r.Server == c.id {
		return r, nil
	}
	// Another server has taken the place of the one that was looked at.
	s.prepared.CompareAndSwap(c.prepared, nil)
	return r, fmt.Errorf("its connections lead to several servers, %s and %s: give the address of one (%w)", c.id, r.Server, casnode.ErrUnprepared)
}

// checkClock reports whether the time of a statement can be its server's: when it
// was evaluated, it was later by no more than the statement took. Otherwise the
// session has set it, or the server's clock was set meanwhile.
func checkClock(later, took time.Duration) bool {
	const slack = 10 * time.Millisecond
	return later >= -slack && later <= took+slack
}

// errReplicated says that a server has become a replica, and is looked at anew.
var errReplicated = fmt.Errorf("this server has become a replica: %w (%w)", casnode.ErrUnprepared, node.ErrUnsent)

// checkFitness returns an error if a session may not write locks. Without
// autocommit, reading has begun a transaction. One that somebody else began is not
// ours to end, and a session that somebody has changed may have one that is not
// looked for: its connection leaves the pool.
func (s *store) checkFitness(ctx context.Context, c *sql.Conn, fitness string) error {
	switch fitness {
	case "fit":
		return nil
	case "autocommit":
		rollBack(ctx, c)
	case "replicated":
		s.prepared.Store(nil)
		return errReplicated
	case "replica":
		s.prepared.Store(nil) // once it has stopped it is looked at again
	default:
		drop(c)
	}
	return fmt.Errorf("%s (%w)", unfit[fitness], node.ErrUnsent)
}

// withoutTable returns the fitness that a statement has found which opens no table.
func withoutTable(fitness string) string {
	if fitness == "unseen" {
		return "fit" // the next one that opens a table sees it
	}
	return fitness
}

// noTransaction ends a transaction, and begins none, whatever completion_type is.
const noTransaction = "ROLLBACK AND NO CHAIN NO RELEASE"

// rollBack ends a transaction that is open on a connection, or the connection.
func rollBack(ctx context.Context, c *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitAtMost)
	defer cancel()
	if _, err := c.ExecContext(ctx, noTransaction); err != nil {
		drop(c)
	}
}

// Swap reads in the same session if it writes nothing, and after the commit if the places
// are needed. A waiter that was rung for looks in its place.
//
// A stamped statement that took milliseconds until it compared the clock writes nothing:
// its server was busy. If nothing else is the reason it is executed again. Its caller
// would take the server for far away, and read before every write for a while.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	c, ctx, err := s.enter(ctx)
	if err != nil {
		return false, present, err
	}
	defer c.Close()
	next, end := w.Row, seen.Now.Add(casnode.Span)
	text, update, args := c.insert, c.update, []any{next.Version, next.State, []byte(next.Name), seen.Server, seen.Marker.Version}
	if w.Stamped {
		text, update = c.stampedInsert, c.stampedUpdate
		args = []any{next.Version, seen.Now.UnixMicro(), next.State, []byte(next.Name), seen.Server, seen.Now.UnixMicro(), end.UnixMicro(), seen.Marker.Version}
	}
	switch {
	case next.Name == casnode.MarkerName:
		text, args = c.mark, []any{next.Version, next.State, seen.Row.Version, seen.Server}
	case seen.Row.Version != "":
		text, args = update, append(args, seen.Row.Version, seen.Row.Version)
	}
	for range 3 {
		if done, err = c.write(ctx, text, args, seen, next); err != nil {
			return false, present, err
		}
		rung := false
		if done {
			for _, wake := range w.Wakes {
				rung = c.ring(ctx, wake.Process)
			}
			if w.Drop != nil {
				_ = c.remove(ctx, *w.Drop, 0) // else it is evicted when its turn comes
			}
		}
		switch {
		case !done:
			present, _, err = s.read(ctx, c, casnode.Place{Name: next.Name})
		case rung && len(w.Wakes) == 1 && w.Drop == nil: // if that waiter has left, its process passes the name on
			present.Server, present.Places = seen.Server, seen.Places
		case w.Look: // it is committed: if this fails, who waits asks all the same
			present.Server = seen.Server
			if present.Places, _, _, err = s.line(ctx, c, casnode.Place{Name: next.Name}); err != nil {
				present.Places, err = seen.Places, nil
			}
		}
		switch {
		case err != nil:
			return false, casnode.Snapshot{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		case done || !w.Stamped || present.Row.Version != seen.Row.Version || present.Marker.Version != seen.Marker.Version ||
			present.Now.Before(seen.Now) || present.Now.After(end):
			return done, present, nil
		}
	}
	return false, present, nil
}

// Stamps has a write obey Write.Stamped.
func (s *store) Stamps() {}

// write executes a statement that writes a row, and reports whether it did.
//
// A row that was read, and is missing now, is inserted: the server counts one row, and
// two if it replaced one. So it is removed again. Meanwhile it does no harm: when a
// row is missing nobody else holds, and it is what its writer may hold. If it cannot
// be removed, that is an error after which the write may have been executed.
func (c session) write(ctx context.Context, text string, args []any, seen casnode.Snapshot, next casnode.Row) (bool, error) {
	res, err := c.exec(ctx, text, args...)
	switch number(err) {
	case duplicate, deadlock, recordChanged:
		return false, nil // another transaction came between: read again
	case lockWait:
		rollBack(ctx, c.Conn) // it has ended the statement, and not the transaction
	}
	if err != nil {
		return false, explain(err)
	}
	n, err := res.RowsAffected()
	if err == nil && n == 1 && seen.Row.Version != "" && next.Name != casnode.MarkerName {
		// The server also counts one that is as before, if the pool asks for that.
		_, err = c.exec(ctx, c.undo, []byte(next.Name), next.Version)
		return false, err
	}
	return n > 0, err
}

// Scan returns rows in the order of their names. The marker's name is before all
// others.
func (s *store) Scan(ctx context.Context, after string, limit int) (all []casnode.Row, err error) {
	c, ctx, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var r casnode.Row
	err = query(ctx, c, c.limit(ctx, c.rows), []any{[]byte(after), limit}, []any{&r.Name, &r.Version, &r.State},
		func() { all = append(all, r) })
	return all, err
}

func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	names, versions := []any{seen.Server}, []any{}
	for _, r := range rows {
		names, versions = append(names, []byte(r.Name)), append(versions, r.Version)
	}
	c, ctx, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	text := strings.ReplaceAll(c.texts.remove, "NAMES_", "?"+strings.Repeat(", ?", len(rows)-1))
	_, err = c.exec(ctx, text, append(names, versions...)...)
	return explain(err)
}

func (s *store) String() string { return s.name }

// where returns a table's database, if it has one of its own, and its name.
func where(quoted string) (database *string, table string) {
	parts := strings.Split(strings.ReplaceAll(quoted, "`", ""), ".")
	if len(parts) == 2 {
		return &parts[0], parts[1]
	}
	return nil, parts[0]
}

func (s *store) Close() error {
	if s.own {
		// It fails on connections that were broken before. They are closed all
		// the same.
		_ = s.db.Close()
	}
	return nil
}
