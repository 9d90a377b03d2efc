package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// store is the table. Every statement is a transaction of its own: a pooler may
// give each one another session.
type store struct {
	pool    *pgxpool.Pool
	own     bool // close the pool
	name    string
	table   string // quoted
	places  string // the table of places, quoted
	channel string
	texts   map[kind]statement
	queue
}

const (
	// now is the server's clock in microseconds: what is rounded, of numbers that are
	// quicker than decimals, is less than half of one.
	now = `(date_part('epoch', clock_timestamp()) * 1000000)::bigint`

	// began is the same when the statement began: when the server had received it,
	// before it looked at any row.
	began = `(date_part('epoch', statement_timestamp()) * 1000000)::bigint`

	// server identifies the server: the cluster, and its timeline, which changes
	// when a replica is promoted. The control file shows the former timeline for
	// some seconds after that, so the timeline is that of the log position. A
	// replica has none.
	server = `CASE WHEN pg_is_in_recovery() THEN '' ELSE ` + system + ` || '/' ||
		substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END`
	system = `(SELECT system_identifier FROM pg_control_system())`

	// durable is what has a transaction wait until it is on disk, whatever the server's
	// default. sure is what a session of our own is sure of, set once: that, that no
	// statement waits for a lock for longer than its caller, and which server it is.
	durable = `CASE current_setting('synchronous_commit') WHEN 'off' THEN 'local' ELSE current_setting('synchronous_commit') END`
	sure    = `set_config('synchronous_commit', ` + durable + `, true) IS NOT NULL AND set_config('lock_timeout', $limit, true) IS NOT NULL AND ` + server + ` = $server`
)

// query executes a statement on any connection. query, below, says how.
func (s *store) query(ctx context.Context, text string) ([][][]byte, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	return query(ctx, conn.Conn().PgConn(), text)
}

// query executes a statement and returns its rows, as text.
func query(ctx context.Context, conn *pgconn.PgConn, text string) ([][][]byte, error) {
	results, err := execute(ctx, conn, simple(text))
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0].Rows, nil
}

// execute sends statements together, each a transaction of its own, and returns the
// results of the first one and of those after it, until one has failed. They go on then.
// A result counts when the server has said that no transaction is open any more.
//
// Each that writes is a message of the simple protocol, which the server executes and
// commits when it has all of it. With the extended protocol it also executes one whose
// Sync never comes, since the client's host vanished, and keeps the transaction
// open and the row locked until it finds the connection dead: after hours, by
// default. A read there locks no row, and costs a quarter less.
//
// Every literal in a statement is made of letters, digits and the characters of
// base64, so there is nothing to escape, whatever the session's settings. What a
// statement returns is numbers, hexadecimal digits and plain text, which no
// setting of the session changes.
//
// It is a transaction of its own. A hook of a given pool may have begun another one
// before, and a pooler may hand on one that somebody else has begun. What was written
// there is not committed. The pool closes such a connection.
//
// The driver's own way to execute a text sets a timer for each, and watches the context
// for each part of an answer. Both wake a thread, which is a sixth of the client's work.
// No timer is needed: the server answers when it has read a message, and in few bytes,
// so it never waits for us to read while we write.
func execute(ctx context.Context, conn *pgconn.PgConn, sends ...func(*pgproto3.Frontend)) (results []*pgconn.Result, err error) {
	if conn.TxStatus() != idle || ctx.Err() != nil {
		return nil, fmt.Errorf("%w (%w)", cmp.Or(ctx.Err(), errOpen), node.ErrUnsent)
	}
	for _, send := range sends {
		send(conn.Frontend())
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Conn().SetDeadline(time.Unix(1, 0)) })
	broken := conn.Frontend().Flush()
	rows, open := [][][]byte(nil), []*pgconn.Result(nil) // not known to be committed
	for ready := 0; ready < len(sends) && broken == nil; {
		message, failed := conn.ReceiveMessage(context.Background())
		if failed != nil {
			if len(open) > 0 {
				err = nil // it is of a later statement: those before it may be committed
			}
			// The driver says that nothing was sent, which is not true: its cause does not.
			broken = cmp.Or(err, ctx.Err(), errors.Unwrap(failed), failed)
		}
		switch m := message.(type) {
		case *pgproto3.DataRow:
			row := make([][]byte, len(m.Values))
			for i, v := range m.Values {
				row[i] = bytes.Clone(v)
			}
			rows = append(rows, row)
		case *pgproto3.CommandComplete:
			open = append(open, &pgconn.Result{Rows: rows, CommandTag: pgconn.NewCommandTag(string(m.CommandTag))})
			rows = nil
		case *pgproto3.ErrorResponse:
			err = cmp.Or(err, error(pgconn.ErrorResponseToPgError(m)))
		case *pgproto3.ReadyForQuery:
			if ready++; m.TxStatus != idle {
				err = cmp.Or(err, errOpen)
			} else if err == nil || ready == 1 {
				results = append(results, open...)
			}
			open, rows = nil, nil
		}
	}
	if !stop() || broken != nil {
		// Nothing can be sent after the deadline. So the driver closes the connection,
		// and has the server cancel what it may still execute.
		_ = conn.Conn().SetDeadline(time.Unix(1, 0))
		_ = conn.Exec(context.Background(), "").Close()
	}
	if conn.TxStatus() == failed {
		// What the message began is over. Without this the pool closes the connection.
		_ = conn.Exec(ctx, "ROLLBACK").Close()
	}
	return results, cmp.Or(broken, err)
}

// idle is the status of a session in which no transaction is open, and failed that of
// one in which a transaction must be rolled back.
const idle, failed = 'I', 'E'

var errOpen = errors.New("a transaction is open in this session, so a lock would not be committed: do not begin one in a hook of the pool (AfterConnect, PrepareConn)")

// simple sends a text as a message of the simple protocol.
func simple(text string) func(*pgproto3.Frontend) {
	return func(f *pgproto3.Frontend) { f.SendQuery(&pgproto3.Query{String: text}) }
}

// quoted returns a text as a literal.
func quoted(text string) string { return "'" + text + "'" }

// hexed returns bytes as hexadecimal digits.
func hexed[T string | []byte](b T) string { return hex.EncodeToString([]byte(b)) }

// bytea returns bytes as a literal.
func bytea(b string) string { return "decode(" + quoted(hexed(b)) + ", 'hex')" }

var errReplica = errors.New("this server is a replica: give the address of the primary")

// Read reads once more where it finds nothing at all. A statement that is prepared, or
// that is executed under repeatable read, takes its snapshot before it waits for the
// table. If the table is rewritten meanwhile (ALTER TABLE ... SET UNLOGGED, or TRUNCATE
// and INSERT), it sees it empty. The second one does not wait.
func (s *store) Read(ctx context.Context, name string) (r casnode.Snapshot, err error) {
	return s.after(ctx, s.readOf(name), name)
}

// after reads in the same message as what is executed before, after its commit.
func (s *store) after(ctx context.Context, read call, name string, before ...call) (r casnode.Snapshot, err error) {
	results, err := s.run(ctx, append(before, read)...)
	if err != nil {
		return r, explain(err)
	}
	return s.snapshot(ctx, read, name, results[len(before)].Rows)
}

// readOf reads the row of a name.
func (s *store) readOf(name string) call {
	return call{statement: s.texts[kind{read: true}], values: []string{hexed(name)}}
}

// snapshot returns what a read has found.
func (s *store) snapshot(ctx context.Context, read call, name string, rows [][][]byte) (r casnode.Snapshot, err error) {
	if len(rows) == 1 && len(rows[0]) == 9 && rows[0][2] == nil && rows[0][4] == nil {
		rows, err = s.query(ctx, read.plain())
	}
	switch {
	case err != nil:
		return r, explain(err)
	case len(rows) != 1 || len(rows[0]) != 9:
		return r, fmt.Errorf("the table %s has %d rows of one name: %w", s.table, len(rows), errShape)
	}
	row := rows[0]
	if r.Now, err = parseTime(row[0]); err != nil {
		return r, err
	}
	if r.Server = string(row[1]); r.Server == "" {
		return r, errReplica
	}
	if r.Row, err = parseRow(name, row[2], row[3]); err != nil {
		return r, err
	}
	if r.Marker, err = parseRow(casnode.MarkerName, row[4], row[5]); err != nil {
		return r, err
	}
	if r.Places, err = parseText(name, row[6]); err == nil {
		r.Rank, err = strconv.Atoi(string(row[7]))
	}
	return r, err
}

func parseRow(name string, version, state []byte) (casnode.Row, error) {
	r := casnode.Row{Name: name, Version: string(version)}
	var err error
	r.State, err = hex.DecodeString(string(state))
	return r, err
}

func parseTime(text []byte) (time.Time, error) {
	us, err := strconv.ParseInt(string(text), 10, 64)
	return time.UnixMicro(us).UTC(), err
}

// Swap is a transaction of one statement, which compares server, marker and row with what was read.
//
// It sees marker and row as they were when it began, and may have to wait for the
// row's lock then. If the row was changed meanwhile, it has another version, and
// nothing is written. If the marker was changed meanwhile, the write comes late.
// That is harmless: a grant is counted from its read, when the former marker was
// valid, so it has expired when the quarantine that the next marker began is over;
// and the row, which has not changed since, still tells all others of it. A lock
// of the marker (FOR SHARE) would exclude it, and costs: with 16 writers a quarter
// of the throughput, and writers of the marker wait for seconds, since readers are
// let in before them.
//
// A new row has no version that shows that nothing was lost meanwhile. So an
// insert keeps the marker from being deleted until it has ended: otherwise one
// that waits could come after somebody else's row, and then the marker and that
// row, were deleted.
//
// A write that is stamped counts from when its statement began, which is before it
// saw the marker. So the same holds for it.
//
// The places are read in the same message, in a statement after the transaction, so in
// a snapshot from after the commit; in the statement itself if they may be older.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	next := w.Row
	k := kind{insert: seen.Row.Version == "", marker: next.Name == casnode.MarkerName, stamped: w.Stamped, wakes: len(w.Wakes) > 0, drop: w.Drop != nil}
	var to, texts []string
	for _, wake := range w.Wakes {
		to, texts = append(to, s.channelOf(wake.Process)), append(texts, wake.Process+" "+wake.Text)
	}
	values := []string{hexed(next.Name), seen.Row.Version, next.Version, hexed(next.State), seen.Marker.Version,
		strconv.FormatInt(seen.Now.UnixMicro(), 10)}
	if k.wakes {
		values = append(values, array(to), array(texts))
	}
	if k.drop {
		values = append(values, strconv.FormatInt(w.Drop.Ticket, 10), w.Drop.Waiter)
	}
	near := w.Near && k.drop && !k.wakes
	calls := []call{{s.texts[k], values, [2]string{seen.Server, strconv.FormatInt(limit(ctx).Milliseconds(), 10)}}}
	if w.Look && !near {
		calls = append(calls, call{statement: s.look, values: values[:1]})
	}
	results, err := s.run(ctx, calls...)
	done = len(results) > 0 && results[0].CommandTag.RowsAffected() > 0
	switch {
	case !done && (hasCode(err, "40001") || hasCode(err, "40P01")):
		err = nil // another transaction came between: read again
	case err != nil && len(results) == 0:
		return false, present, explain(err)
	}
	switch {
	case done && err != nil: // it is committed: if the look fails, who waits asks all the same
		present.Server, present.Places, err = seen.Server, seen.Places, nil
	case err != nil:
		err = errors.New(err.Error())
	case done && near:
		present.Server = seen.Server
		present.Places, err = parseText(next.Name, results[0].Rows[0][0])
	case done && w.Look:
		present.Server = seen.Server
		present.Places, err = parsePlaces(next.Name, results[1].Rows)
	case !done && err == nil && w.Stamped:
		if present, err = s.Read(ctx, next.Name); err != nil {
			err = fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		}
	}
	return done, present, err
}

// Stamps has a write obey Write.Stamped.
func (s *store) Stamps() {}

// array returns texts as the text of an array.
func array(texts []string) string { return `{"` + strings.Join(texts, `","`) + `"}` }

// limit is how long a write may wait for the lock of a row: not for longer than
// its caller waits, or it would go on waiting on the server when the caller is
// gone. On a session of our own it is most, whoever waits: to set it anew takes time,
// and a caller that leaves has the server cancel the write.
func limit(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Millisecond, min(time.Until(end), most))
	}
	return most
}

const most = 10 * time.Second

// Scan returns rows in the order of their names. The marker's name is before all
// others.
func (s *store) Scan(ctx context.Context, after string, limit int) (all []casnode.Row, err error) {
	rows, err := s.query(ctx, fmt.Sprintf(`SELECT encode(name, 'hex'), version, encode(state, 'hex') FROM %s
		WHERE name > %s ORDER BY name LIMIT %d`, s.table, bytea(after), limit))
	if err != nil {
		return nil, explain(err)
	}
	for _, row := range rows {
		name, err := hex.DecodeString(string(row[0]))
		if err != nil {
			return nil, err
		}
		r, err := parseRow(string(name), row[1], row[2])
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Remove passes over rows that are in use.
func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	var all []string
	for _, r := range rows {
		all = append(all, "("+bytea(r.Name)+", '"+r.Version+"')")
	}
	_, err := s.query(ctx, fmt.Sprintf(`WITH gone AS MATERIALIZED (
			SELECT l.name, l.version FROM %[1]s l JOIN (VALUES %[2]s) v (name, version) ON l.name = v.name AND l.version = v.version
			WHERE %[3]s = '%[4]s' FOR UPDATE OF l SKIP LOCKED
		) DELETE FROM %[1]s l USING gone WHERE l.name = gone.name AND l.version = gone.version`,
		s.table, strings.Join(all, ", "), server, seen.Server))
	return explain(err)
}

func (s *store) String() string { return s.name }

// closeLimit is how long Close waits for the pool. The pool itself waits up to
// 15 s for a server that does not answer the cancellation of a request.
const closeLimit = 100 * time.Millisecond

func (s *store) Close() error {
	if !s.own {
		return nil
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
	return nil
}
