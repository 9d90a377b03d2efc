package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node/risk"
	"github.com/redlatch/redlatch/store/casnode"
)

var _ risk.Examiner = (*Node)(nil)

// health is what an examination asks the server for.
type health struct {
	Version     int
	VersionText string
	Fsync       string
	Persistence string // of the table: p, u for unlogged, t for temporary
	Standbys    string // synchronous_standby_names, if commits wait for them
	Replicas    int
	Timeout     int64 // statement_timeout in milliseconds; 0 for none
	Used, Most  int   // connections
	Oldest      int64 // for how many seconds a transaction has kept dead rows
}

// healthText has a column for each field, and returns them as one JSON object.
const healthText = `SELECT row_to_json(h) FROM (SELECT
	current_setting('server_version_num')::int AS version, current_setting('server_version') AS versiontext,
	current_setting('fsync') AS fsync, (SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass('%s')) AS persistence,
	CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN '' ELSE current_setting('synchronous_standby_names') END AS standbys,
	(SELECT count(*) FROM pg_stat_replication) AS replicas,
	(SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout') AS timeout,
	(SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL) AS used, current_setting('max_connections')::int AS most,
	(SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::bigint FROM pg_stat_activity
		WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()) AS oldest) h`

// Examine checks the server's role, durability, replication and limits, and
// tries the requests of a lock.
func (n *Node) Examine(ctx context.Context, exam risk.Exam) ([]risk.Finding, error) {
	if _, _, err := n.Identity(ctx); err != nil {
		return nil, err
	}
	found := n.Rights(ctx, exam, "give the user the rights that redlatch schema postgres prints")
	rows, err := n.store.query(ctx, fmt.Sprintf(healthText, n.store.table))
	if err != nil {
		return found.All, explain(err)
	}
	var h health
	if err := json.Unmarshal(rows[0][0], &h); err != nil {
		return found.All, err
	}
	h.examine(found, exam)
	if n.poll {
		found.Add(risk.Fine, "wakes", "waiters poll, as poll=true asks", "", "")
	} else if n.store.hearsItself(ctx) {
		found.Add(risk.Fine, "wakes", "waiters are notified", "", "")
	} else {
		found.Add(risk.Advice, "wakes", "a notification does not come back: there seems to be a pooler in between",
			"waiters poll, which costs statements and a moment", "give the address of the server itself, or poll=true to keep it so")
	}
	return found.All, nil
}

func (h *health) examine(found *casnode.Findings, exam risk.Exam) {
	if h.Version < 120000 {
		found.Add(risk.Danger, "version", "PostgreSQL "+h.VersionText, "it is tested from 12 on", "upgrade the server")
	} else {
		found.Add(risk.Fine, "version", "PostgreSQL "+h.VersionText, "", "")
	}
	switch {
	case h.Persistence == "u":
		found.Add(risk.Danger, "durability", "the table is unlogged", "it is emptied after a crash: locks that are held are granted again", "ALTER TABLE … SET LOGGED")
	case h.Persistence != "p":
		found.Add(risk.Danger, "durability", "the table is temporary", "other sessions have another one: locks exclude nobody", "create the table as redlatch schema postgres prints it")
	case h.Fsync == "off":
		found.Add(risk.Danger, "durability", "fsync is off", "after a crash of the machine the server may have forgotten locks that are held, and grants them again", "set fsync = on")
	default:
		found.Add(risk.Fine, "durability", "every change is on disk before it is answered", "whatever synchronous_commit is set to", "")
	}
	switch {
	case h.Replicas > 0 && h.Standbys == "" && !exam.Guarded:
		found.Add(risk.Danger, "replication", fmt.Sprintf("%d replicas follow asynchronously, and the guard is off", h.Replicas),
			"one that is promoted lacks the last locks, and grants them again", "switch the guard on (--guard on), or set synchronous_standby_names")
	case h.Replicas > 0 && h.Standbys == "":
		found.Add(risk.Advice, "replication", fmt.Sprintf("%d replicas follow asynchronously", h.Replicas),
			"one that is promoted is quarantined, since it may lack the last locks; a primary that lives on beside it, or is started again as it was, grants locks that are held there",
			"stop the primary before a promotion, and never start it again without pg_rewind; or set synchronous_standby_names; promote with pg_promote, never by removing standby.signal")
	default:
		found.Add(risk.Fine, "replication", fmt.Sprintf("%d replicas", h.Replicas), "", "")
	}
	const least = 500 // milliseconds
	if h.Timeout > 0 && h.Timeout < least {
		found.Add(risk.Warning, "limits", fmt.Sprintf("statement_timeout is %d ms", h.Timeout), "a slow moment of the disk counts as a failure of the node", "raise it to a second or more for this user: ALTER ROLE … SET statement_timeout")
	}
	if h.Most-h.Used < h.Most/10 {
		found.Add(risk.Warning, "limits", fmt.Sprintf("%d of %d connections are in use", h.Used, h.Most), "when none is left, locks are unavailable", "raise max_connections, or put a pooler before it")
	}
	if long := time.Duration(h.Oldest) * time.Second; long > time.Minute {
		found.Add(risk.Warning, "bloat", fmt.Sprintf("a transaction has been open for %v", long), "rows that are replaced cannot be removed: locks get slower and slower", "end it, or keep locks in a database of their own")
	}
}
