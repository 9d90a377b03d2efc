package postgres

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redlatch/redlatch/internal/rownode"
	"github.com/redlatch/redlatch/node"
)

// store is the table. Every statement is a transaction of its own: a pooler may
// give each one another session.
type store struct {
	pool  *pgxpool.Pool
	own   bool // close the pool
	name  string
	table string // quoted
	texts texts

	// unprepared is set once a statement that was prepared was not there: a
	// pooler gave the next one another session.
	unprepared atomic.Bool
}

// texts are the statements, for one table.
type texts struct{ read, update, insert, rows, sweep string }

func statements(table, channel string) texts {
	put := func(s string) string {
		return strings.NewReplacer("TABLE_", table, "CHANNEL_", channel, "DURABLE_", durable).Replace(s)
	}
	return texts{
		read: put(`SELECT clock_timestamp(), ` + server + `, l.version, l.state, m.version, m.state
			FROM (SELECT 1) one LEFT JOIN TABLE_ l ON l.name = $1 LEFT JOIN TABLE_ m ON m.name = ''`),
		update: put(`WITH put AS (
				UPDATE TABLE_ SET version = $3, state = $4, until = $5
				WHERE name = $1 AND version = $2 AND DURABLE_ RETURNING 1
			), sent AS (SELECT pg_notify('CHANNEL_', w) FROM put, unnest($6::text[]) w)
			SELECT (SELECT count(*) FROM put), (SELECT count(*) FROM sent)`),
		insert: put(`WITH put AS (
				INSERT INTO TABLE_ (name, version, state, until)
				SELECT $1, $3, $4, $5 WHERE $2::bigint = 0 AND DURABLE_
				ON CONFLICT DO NOTHING RETURNING 1
			), sent AS (SELECT pg_notify('CHANNEL_', w) FROM put, unnest($6::text[]) w)
			SELECT (SELECT count(*) FROM put), (SELECT count(*) FROM sent)`),
		rows: put(`SELECT clock_timestamp(), name, version, state FROM TABLE_
			WHERE name > $1 AND name <> '' ORDER BY name LIMIT $2`),
		// Those in use are skipped, and swept another time.
		sweep: put(`DELETE FROM TABLE_ WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM TABLE_ WHERE until < clock_timestamp() - interval '1 minute'
			LIMIT 100 FOR UPDATE SKIP LOCKED))`),
	}
}

const (
	// server identifies the server: the cluster, and its timeline, which changes
	// when a replica is promoted. The control file shows the former timeline for
	// some seconds after that, so the timeline is that of the log position. A
	// replica has none.
	server = `CASE WHEN pg_is_in_recovery() THEN '' ELSE
		(SELECT system_identifier FROM pg_control_system()) || '/' ||
		substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END`

	// durable has the statement's transaction wait until it is on disk, whatever
	// the server's default.
	durable = `(SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'off' THEN 'local' ELSE current_setting('synchronous_commit') END, true)) IS NOT NULL`
)

// Prepare creates the table, if it is not there.
func (s *store) Prepare(ctx context.Context) error {
	if exists, err := s.exists(ctx); exists || err != nil {
		return err
	}
	_, failed := s.pool.Exec(ctx, create(s.table), mode)
	if failed == nil {
		return nil
	}
	// Of two that create it at once one may be refused, with one of several
	// errors. Then the table is there now.
	if exists, err := s.exists(ctx); exists && err == nil {
		return nil
	}
	return fmt.Errorf("%w: the table %s is missing and cannot be created: create it by hand (redlatch schema postgres)", failed, s.table)
}

func (s *store) exists(ctx context.Context) (exists bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, mode, s.table).Scan(&exists)
	return exists, err
}

// mode sends each statement with its parameters, in one round trip.
const mode = pgx.QueryExecModeExec

// row executes a statement that returns one row. It is prepared once for each
// connection, which saves the server from planning it each time.
func (s *store) row(ctx context.Context, text string, args []any, to ...any) error {
	if !s.unprepared.Load() {
		err := s.pool.QueryRow(ctx, text, append([]any{pgx.QueryExecModeCacheStatement}, args...)...).Scan(to...)
		if !unknown(err) {
			return err
		}
		s.unprepared.Store(true)
	}
	return s.pool.QueryRow(ctx, text, append([]any{mode}, args...)...).Scan(to...)
}

// unknown reports that a session does not know a prepared statement, or has one
// of that name already. Then nothing was executed.
func unknown(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "26000" || refused.Code == "42P05")
}

var errReplica = errors.New("this server is a replica: give the address of the primary")

func (s *store) Read(ctx context.Context, name string) (r rownode.Snapshot, err error) {
	var version, markerVersion *int64
	err = s.row(ctx, s.texts.read, []any{[]byte(name)},
		&r.Now, &r.Server, &version, &r.Row.State, &markerVersion, &r.Marker.State)
	if err != nil {
		return r, explain(err)
	}
	if r.Server == "" {
		return r, errReplica
	}
	r.Row.Name, r.Marker.Name = name, rownode.MarkerName
	if version != nil {
		r.Row.Version = *version
	}
	if markerVersion != nil {
		r.Marker.Version = *markerVersion
	}
	return r, nil
}

func (s *store) Swap(ctx context.Context, old int64, next rownode.Row, wakes []node.Wake) (bool, error) {
	text := s.texts.update
	if old == 0 {
		text = s.texts.insert
	}
	messages := make([]string, len(wakes))
	for i, w := range wakes {
		messages[i] = message(next.Name, w)
	}
	var put, sent int
	err := s.row(ctx, text, []any{[]byte(next.Name), old, next.Version, next.State, next.Until, messages}, &put, &sent)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01") {
		return false, nil // another transaction came between: read again
	}
	if err != nil {
		return false, explain(err)
	}
	return put == 1, nil
}

func (s *store) Rows(ctx context.Context, after string, limit int) (all []rownode.Row, now time.Time, err error) {
	rows, err := s.pool.Query(ctx, s.texts.rows, mode, []byte(after), limit)
	if err != nil {
		return nil, now, explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name []byte
		var r rownode.Row
		if err := rows.Scan(&now, &name, &r.Version, &r.State); err != nil {
			return nil, now, explain(err)
		}
		r.Name = string(name)
		all = append(all, r)
	}
	return all, now, explain(rows.Err())
}

func (s *store) Sweep(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, s.texts.sweep, mode)
	return explain(err)
}

func (s *store) String() string { return s.name }

func (s *store) Close() error {
	if s.own {
		s.pool.Close()
	}
	return nil
}

// explain adds to an error of the server what to do about it.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	switch {
	case !errors.As(err, &refused):
		if pgconn.SafeToRetry(err) {
			return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		}
		return err
	case refused.Code == "42P01":
		return fmt.Errorf("%w: create the table first (redlatch schema postgres) (%w)", err, node.ErrUnsent)
	case refused.Code == "42501":
		return fmt.Errorf("%w: grant the rights that redlatch schema postgres prints (%w)", err, node.ErrUnsent)
	case refused.Code == "25006":
		return fmt.Errorf("%w: %w (%w)", errReplica, err, node.ErrUnsent)
	}
	switch class := refused.Code[:min(2, len(refused.Code))]; class {
	case "08", "57", "58", "XX": // the connection or the server failed, maybe after the commit
		return err
	}
	// The server refused the statement, so its transaction had no effect.
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}

// message is a notification: its kind, the fence, the name and the waiter.
func message(name string, w node.Wake) string {
	encode := base64.RawStdEncoding.EncodeToString
	return strconv.Itoa(int(w.Kind)) + " " + w.Fence.String() + " " + encode([]byte(name)) + " " + encode([]byte(w.Value))
}

// parseMessage reads what message returns.
func parseMessage(text string) (name string, w node.Wake, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 {
		return "", w, false
	}
	kind, err1 := strconv.Atoi(parts[0])
	fence, err2 := strconv.ParseUint(parts[1], 10, 64)
	of, err3 := base64.RawStdEncoding.DecodeString(parts[2])
	value, err4 := base64.RawStdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || kind < int(node.WakeTurn) || kind > int(node.WakeCall) {
		return "", w, false
	}
	return string(of), node.Wake{Kind: node.WakeKind(kind), Value: string(value), Fence: node.Token(fence)}, true
}
