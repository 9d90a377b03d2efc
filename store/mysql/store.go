package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// store is the table.
type store struct {
	db    *sql.DB
	own   bool // close the database
	name  string
	table string // quoted
	// prepared is what Prepare found out; nil if it must look again.
	prepared atomic.Pointer[prepared]
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
	// slack is how much longer the server gets for a statement than its caller
	// waits for it.
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
}

// enter returns a session on a server that is prepared.
func (s *store) enter(ctx context.Context) (c session, err error) {
	if c.prepared = s.prepared.Load(); c.prepared == nil {
		return c, casnode.ErrUnprepared
	}
	c.Conn, err = s.conn(ctx)
	return c, err
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
	c, err := s.enter(ctx)
	if err != nil {
		return r, err
	}
	defer c.Close()
	return s.read(ctx, c, name)
}

func (s *store) read(ctx context.Context, c session, name string) (r casnode.Snapshot, err error) {
	var now, later int64 // microseconds
	var fitness string
	var version, marker sql.NullString
	begun := time.Now()
	err = c.queryRow(ctx, c.texts.read, []byte(name)).
		Scan(&now, &later, &r.Server, &fitness, &version, &r.Row.State, &marker, &r.Marker.State)
	if err != nil {
		return r, explain(err)
	}
	if fitness == "fit" && !checkClock(time.Duration(later)*time.Microsecond, time.Since(begun)) {
		fitness = "timestamp"
	}
	if err := s.checkFitness(ctx, c.Conn, fitness); err != nil {
		return r, err
	}
	if !marker.Valid {
		return r, fmt.Errorf("the table has been emptied: %w", casnode.ErrUnprepared)
	}
	r.Now = time.UnixMicro(now).UTC()
	r.Row.Name, r.Row.Version = name, version.String
	r.Marker.Name, r.Marker.Version = casnode.MarkerName, marker.String
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

// Swap sends no wakes: waiters poll.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, next casnode.Row, _ []string) (bool, error) {
	c, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	var text string
	var args []any
	switch {
	case next.Name == casnode.MarkerName:
		text, args = c.mark, []any{next.Version, next.State, seen.Row.Version, seen.Server}
	case seen.Row.Version == "":
		text, args = c.insert, []any{next.Version, next.State, []byte(next.Name), seen.Server, seen.Marker.Version}
	default:
		text, args = c.update, []any{next.Version, next.State, []byte(next.Name), seen.Server, seen.Marker.Version, seen.Row.Version, seen.Row.Version}
	}
	done, err := c.write(ctx, text, args, seen, next)
	if done || err != nil {
		return done, err
	}
	// Row, marker or server are others. Or it is this session, which the next
	// read may not have.
	var fitness string
	if err := c.queryRow(ctx, "SELECT "+c.fit).Scan(&fitness); err != nil {
		return false, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	if err := s.checkFitness(ctx, c.Conn, withoutTable(fitness)); !errors.Is(err, errReplicated) {
		return false, err
	}
	return false, nil
}

// SwapStamped reads in the same session if it writes nothing.
//
// A statement that took milliseconds until it compared the clock writes nothing: its
// server was busy. If nothing else is the reason it is executed again. Its caller
// would take the server for far away, and read before every write for a while.
func (s *store) SwapStamped(ctx context.Context, seen casnode.Snapshot, next casnode.Row, _ []string) (done bool, present casnode.Snapshot, err error) {
	c, err := s.enter(ctx)
	if err != nil {
		return false, present, err
	}
	defer c.Close()
	end := seen.Now.Add(casnode.Span)
	text, args := c.stampedInsert, []any{next.Version, seen.Now.UnixMicro(), next.State, []byte(next.Name), seen.Server, seen.Now.UnixMicro(), end.UnixMicro(), seen.Marker.Version}
	if seen.Row.Version != "" {
		text, args = c.stampedUpdate, append(args, seen.Row.Version, seen.Row.Version)
	}
	for range 3 {
		if done, err = c.write(ctx, text, args, seen, next); done || err != nil {
			return done, present, err
		}
		if present, err = s.read(ctx, c, next.Name); err != nil {
			return false, present, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		}
		if present.Row.Version != seen.Row.Version || present.Marker.Version != seen.Marker.Version || present.Now.Before(seen.Now) || present.Now.After(end) {
			break
		}
	}
	return false, present, nil
}

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
	c, err := s.enter(ctx)
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
	c, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	text := strings.ReplaceAll(c.remove, "NAMES_", "?"+strings.Repeat(", ?", len(rows)-1))
	_, err = c.exec(ctx, text, append(names, versions...)...)
	return explain(err)
}

func (s *store) String() string { return s.name }

// where returns the table's database, if it has one of its own, and its name.
func (s *store) where() (database *string, table string) {
	parts := strings.Split(strings.ReplaceAll(s.table, "`", ""), ".")
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
