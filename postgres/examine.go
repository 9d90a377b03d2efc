package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/rownode"
	"github.com/redlatch/redlatch/node"
)

var _ node.Examiner = (*Node)(nil)

// health is what an examination asks the server for.
type health struct {
	version     int
	versionText string
	fsync       string
	persistence string // of the table: p, u for unlogged, t for temporary
	standbys    string // synchronous_standby_names
	replicas    int
	timeout     int64 // statement_timeout in milliseconds; 0 for none
	used, most  int   // connections
	oldest      int64 // for how many seconds a transaction has kept dead rows
}

const healthText = `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
	current_setting('fsync'), coalesce((SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass($1)), ''),
	current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication)::int,
	(SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'),
	(SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL)::int, current_setting('max_connections')::int,
	coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
		WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), 0)::bigint`

// Examine checks the server's role, durability, replication and limits, and
// tries the requests of a lock.
func (n *Node) Examine(ctx context.Context, exam node.Exam) ([]node.Finding, error) {
	found := rownode.Findings{Node: n.String()}
	if err := n.Try(ctx, exam); err != nil {
		if _, _, down := n.Identity(ctx); down != nil {
			return nil, down
		}
		found.Rights(err, "redlatch schema postgres")
	} else {
		found.Rights(nil, "")
	}
	var h health
	if err := n.store.pool.QueryRow(ctx, healthText, mode, n.store.table).Scan(&h.version, &h.versionText, &h.fsync, &h.persistence,
		&h.standbys, &h.replicas, &h.timeout, &h.used, &h.most, &h.oldest); err != nil {
		return found.All, explain(err)
	}
	h.examine(&found, exam)
	if n.poll {
		found.Add(node.Fine, "wakes", "waiters poll, as poll=true asks", "", "")
	} else if n.hearsItself(ctx) {
		found.Add(node.Fine, "wakes", "waiters are notified", "", "")
	} else {
		found.Add(node.Advice, "wakes", "a notification does not come back: there seems to be a pooler in between",
			"waiters poll, which costs statements and a moment", "give the address of the server itself, or poll=true to keep it so")
	}
	return found.All, nil
}

func (h *health) examine(found *rownode.Findings, exam node.Exam) {
	if h.version < 120000 {
		found.Add(node.Danger, "version", "PostgreSQL "+h.versionText, "it is tested from 12 on", "upgrade the server")
	} else {
		found.Add(node.Fine, "version", "PostgreSQL "+h.versionText, "", "")
	}
	switch {
	case h.persistence == "u":
		found.Add(node.Danger, "durability", "the table is unlogged", "it is emptied after a crash: locks that are held are granted again", "ALTER TABLE … SET LOGGED")
	case h.persistence != "p":
		found.Add(node.Danger, "durability", "the table is temporary", "other sessions have another one: locks exclude nobody", "create the table as redlatch schema postgres prints it")
	case h.fsync == "off":
		found.Add(node.Danger, "durability", "fsync is off", "after a crash of the machine the server may have forgotten locks that are held, and grants them again", "set fsync = on")
	default:
		found.Add(node.Fine, "durability", "every change is on disk before it is answered", "whatever synchronous_commit is set to", "")
	}
	switch {
	case h.replicas > 0 && h.standbys == "" && !exam.Guarded:
		found.Add(node.Danger, "replication", fmt.Sprintf("%d replicas follow asynchronously, and the guard is off", h.replicas),
			"one that is promoted lacks the last locks, and grants them again", "switch the guard on (--guard on), or set synchronous_standby_names")
	case h.replicas > 0 && h.standbys == "":
		found.Add(node.Advice, "replication", fmt.Sprintf("%d replicas follow asynchronously", h.replicas),
			"one that is promoted is quarantined, since it may lack the last locks", "set synchronous_standby_names if that wait is too long")
	default:
		found.Add(node.Fine, "replication", fmt.Sprintf("%d replicas", h.replicas), "", "")
	}
	const least = 500 // milliseconds
	if h.timeout > 0 && h.timeout < least {
		found.Add(node.Warning, "limits", fmt.Sprintf("statement_timeout is %d ms", h.timeout), "a slow moment of the disk counts as a failure of the node", "raise it to a second or more for this user: ALTER ROLE … SET statement_timeout")
	}
	if h.most-h.used < h.most/10 {
		found.Add(node.Warning, "limits", fmt.Sprintf("%d of %d connections are in use", h.used, h.most), "when none is left, no lock can be had", "raise max_connections, or put a pooler before it")
	}
	if long := time.Duration(h.oldest) * time.Second; long > time.Minute {
		found.Add(node.Warning, "bloat", fmt.Sprintf("a transaction has been open for %v", long), "rows that are replaced cannot be removed: locks get slower and slower", "end it, or keep locks in a database of their own")
	}
}
