package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

var _ node.Examiner = (*Node)(nil)

// health is what an examination asks the server for.
type health struct {
	version     int
	versionText string
	fsync       string
	persistence string // of the table: p, u for unlogged, t for temporary
	standbys    string // synchronous_standby_names, if commits wait for them
	replicas    int
	timeout     int64 // statement_timeout in milliseconds; 0 for none
	used, most  int   // connections
	oldest      int64 // for how many seconds a transaction has kept dead rows
}

const healthText = `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
	current_setting('fsync'), coalesce((SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('%s')), ''),
	CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN '' ELSE current_setting('synchronous_standby_names') END, (SELECT count(*) FROM pg_stat_replication)::int,
	(SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'),
	(SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL)::int, current_setting('max_connections')::int,
	coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
		WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), 0)::bigint`

// Examine checks the server's role, durability, replication and limits, and
// tries the requests of a lock.
func (n *Node) Examine(ctx context.Context, exam node.Exam) ([]node.Finding, error) {
	if _, _, err := n.Identity(ctx); err != nil {
		return nil, err
	}
	found := n.Rights(ctx, exam, "give the user the rights that redlatch schema postgres prints")
	rows, err := n.store.query(ctx, fmt.Sprintf(healthText, n.store.table))
	if err != nil {
		return found.All, explain(err)
	}
	h, err := parseHealth(rows[0])
	if err != nil {
		return found.All, err
	}
	h.examine(found, exam)
	if n.poll {
		found.Add(node.Fine, "wakes", "waiters poll, as poll=true asks", "", "")
	} else if n.store.hearsItself(ctx) {
		found.Add(node.Fine, "wakes", "waiters are notified", "", "")
	} else {
		found.Add(node.Advice, "wakes", "a notification does not come back: there seems to be a pooler in between",
			"waiters poll, which costs statements and a moment", "give the address of the server itself, or poll=true to keep it so")
	}
	return found.All, nil
}

func parseHealth(row [][]byte) (h health, err error) {
	number := func(i int) (n int) {
		if err == nil {
			n, err = strconv.Atoi(string(row[i]))
		}
		return n
	}
	h = health{version: number(0), versionText: string(row[1]), fsync: string(row[2]), persistence: string(row[3]), standbys: string(row[4]),
		replicas: number(5), timeout: int64(number(6)), used: number(7), most: number(8), oldest: int64(number(9))}
	return h, err
}

func (h *health) examine(found *casnode.Findings, exam node.Exam) {
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
			"one that is promoted is quarantined, since it may lack the last locks; a primary that lives on beside it, or is started again as it was, grants locks that are held there",
			"stop the primary before a promotion, and never start it again without pg_rewind; or set synchronous_standby_names; promote with pg_promote, never by removing standby.signal")
	default:
		found.Add(node.Fine, "replication", fmt.Sprintf("%d replicas", h.replicas), "", "")
	}
	const least = 500 // milliseconds
	if h.timeout > 0 && h.timeout < least {
		found.Add(node.Warning, "limits", fmt.Sprintf("statement_timeout is %d ms", h.timeout), "a slow moment of the disk counts as a failure of the node", "raise it to a second or more for this user: ALTER ROLE … SET statement_timeout")
	}
	if h.most-h.used < h.most/10 {
		found.Add(node.Warning, "limits", fmt.Sprintf("%d of %d connections are in use", h.used, h.most), "when none is left, locks are unavailable", "raise max_connections, or put a pooler before it")
	}
	if long := time.Duration(h.oldest) * time.Second; long > time.Minute {
		found.Add(node.Warning, "bloat", fmt.Sprintf("a transaction has been open for %v", long), "rows that are replaced cannot be removed: locks get slower and slower", "end it, or keep locks in a database of their own")
	}
}
