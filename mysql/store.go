package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redlatch/redlatch/internal/rownode"
	"github.com/redlatch/redlatch/node"
)

// store is the table.
type store struct {
	db    *sql.DB
	own   bool // close the database
	name  string
	table string // quoted
	texts texts
}

// texts are the statements, for one table.
type texts struct{ read, update, insert, rows, sweep string }

func statements(table, server string) texts {
	put := func(s string) string {
		return strings.NewReplacer("TABLE_", table, "SERVER_", server).Replace(s)
	}
	return texts{
		// It waits for nobody, so the time at which it began is the time of the
		// read. UTC: the session may have any time zone.
		read: put(`SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%d %H:%i:%s.%f'), SERVER_, @@GLOBAL.read_only, l.version, l.state, m.version, m.state
			FROM (SELECT 1) one LEFT JOIN TABLE_ l ON l.name = ? LEFT JOIN TABLE_ m ON m.name = ''`),
		update: put(`UPDATE TABLE_ SET version = ?, state = ?, until_us = ? WHERE name = ? AND version = ?`),
		insert: put(`INSERT IGNORE INTO TABLE_ (version, state, until_us, name) VALUES (?, ?, ?, ?)`),
		rows: put(`SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%d %H:%i:%s.%f'), name, version, state FROM TABLE_
			WHERE name > ? AND name <> '' ORDER BY name LIMIT ?`),
		sweep: put(`DELETE FROM TABLE_ WHERE until_us < ? LIMIT 100`),
	}
}

// Prepare creates the table, if it is not there, and finds out how the server
// identifies itself.
func (s *store) Prepare(ctx context.Context) error {
	var version string
	if err := s.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	server := "CONCAT('mysql/', @@GLOBAL.server_uuid)"
	if strings.Contains(strings.ToLower(version), "mariadb") {
		server = "CONCAT('mariadb/', @@GLOBAL.gtid_domain_id, '/', @@GLOBAL.server_id, '/', @@GLOBAL.hostname, ':', @@GLOBAL.port)"
	}
	var one int
	err := s.db.QueryRowContext(ctx, "SELECT 1 FROM "+s.table+" LIMIT 1").Scan(&one)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == noTable {
		if _, err := s.db.ExecContext(ctx, create(s.table)); err != nil {
			return fmt.Errorf("%w: the table %s is missing and cannot be created: create it by hand (redlatch schema mysql)", err, s.table)
		}
	} else if err != nil && err != sql.ErrNoRows {
		return err
	}
	s.texts = statements(s.table, server)
	return nil
}

// parseTime reads what the statements return as the time.
func parseTime(text string) (time.Time, error) {
	return time.ParseInLocation("2006-01-02 15:04:05.000000", text, time.UTC)
}

var errReplica = errors.New("this server is read-only, as replicas are: give the address of the primary")

func (s *store) Read(ctx context.Context, name string) (r rownode.Snapshot, err error) {
	var now string
	var version, markerVersion sql.NullInt64
	var readOnly string
	err = s.db.QueryRowContext(ctx, s.texts.read, []byte(name)).
		Scan(&now, &r.Server, &readOnly, &version, &r.Row.State, &markerVersion, &r.Marker.State)
	if err != nil {
		return r, explain(err)
	}
	if readOnly != "0" && readOnly != "OFF" {
		return r, errReplica
	}
	if r.Now, err = parseTime(now); err != nil {
		return r, err
	}
	r.Row.Name, r.Row.Version = name, version.Int64
	r.Marker.Name, r.Marker.Version = rownode.MarkerName, markerVersion.Int64
	return r, nil
}

// Swap sends no wakes: waiters poll.
func (s *store) Swap(ctx context.Context, old int64, next rownode.Row, _ []node.Wake) (bool, error) {
	text, args := s.texts.update, []any{next.Version, next.State, next.Until.UnixMicro(), []byte(next.Name), old}
	if old == 0 {
		text, args = s.texts.insert, args[:4]
	}
	res, err := s.db.ExecContext(ctx, text, args...)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && (refused.Number == deadlock || refused.Number == recordChanged) {
		return false, nil // another transaction came between: read again
	}
	if err != nil {
		return false, explain(err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (s *store) Rows(ctx context.Context, after string, limit int) (all []rownode.Row, now time.Time, err error) {
	rows, err := s.db.QueryContext(ctx, s.texts.rows, []byte(after), limit)
	if err != nil {
		return nil, now, explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var at string
		var name []byte
		var r rownode.Row
		if err := rows.Scan(&at, &name, &r.Version, &r.State); err != nil {
			return nil, now, explain(err)
		}
		if now, err = parseTime(at); err != nil {
			return nil, now, err
		}
		r.Name = string(name)
		all = append(all, r)
	}
	return all, now, explain(rows.Err())
}

// Sweep goes by this machine's clock, with a margin: it only removes what is long
// over.
func (s *store) Sweep(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, s.texts.sweep, time.Now().Add(-time.Hour).UnixMicro())
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
		return s.db.Close()
	}
	return nil
}

// The numbers of errors.
const (
	noTable       = 1146
	denied        = 1142
	deadlock      = 1213
	recordChanged = 1020 // under snapshot isolation
	readOnly      = 1290
	shutdown      = 1053
	killed        = 1317
)

// explain adds to an error of the server what to do about it.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var refused *mysql.MySQLError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Number == shutdown || refused.Number == killed:
		return err // maybe after the commit
	case refused.Number == noTable:
		return fmt.Errorf("%w: create the table first (redlatch schema mysql) (%w)", err, node.ErrUnsent)
	case refused.Number == denied:
		return fmt.Errorf("%w: grant the rights that redlatch schema mysql prints (%w)", err, node.ErrUnsent)
	case refused.Number == readOnly:
		return fmt.Errorf("%w: %w (%w)", errReplica, err, node.ErrUnsent)
	}
	// The server refused the statement, so it had no effect.
	return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
}
