package mysql

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/node/risk"
)

var _ risk.Examiner = (*Node)(nil)

// healthText asks for the version, whether a commit is on disk when it is
// answered, whether there is a binary log and when that is on disk, and the
// engine of the table.
const healthText = `SELECT VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog,
	COALESCE((SELECT engine FROM information_schema.tables WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?), '')`

// patience is how long a commit must wait for a replica to count as synchronous:
// after rpl_semi_sync_master_timeout, 10 s by default, it waits no longer.
const patience = 24 * time.Hour

// semiSynchronous reports whether a commit waits for a replica, and does not soon
// go on without one. The settings have other names in each product and version.
func (n *Node) semiSynchronous(ctx context.Context) (bool, error) {
	const text = `SHOW GLOBAL VARIABLES WHERE variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled',
		'rpl_semi_sync_master_timeout', 'rpl_semi_sync_source_timeout')`
	var name, value string
	on, waits := false, false
	err := query(ctx, n.store.db, text, nil, []any{&name, &value}, func() {
		on = on || value == "ON"
		ms, err := strconv.ParseInt(value, 10, 64)
		waits = waits || err == nil && ms >= patience.Milliseconds()
	})
	return on && waits, err
}

// Examine checks the server's durability and replication, and tries the requests
// of a lock.
func (n *Node) Examine(ctx context.Context, exam risk.Exam) ([]risk.Finding, error) {
	if _, _, err := n.Identity(ctx); err != nil {
		return nil, err
	}
	found := n.Rights(ctx, exam, "give the user the rights that redlatch schema mysql prints")
	var version, engine string
	var flush, binary, sync int
	database, table := where(n.store.table)
	if err := n.store.db.QueryRowContext(ctx, healthText, database, table).Scan(&version, &flush, &binary, &sync, &engine); err != nil {
		return found.All, explain(err)
	}
	found.Add(risk.Fine, "version", version, "", "")
	switch {
	case engine != "InnoDB":
		found.Add(risk.Danger, "durability", fmt.Sprintf("the engine of the table is %q", engine), "it has no transactions: after a crash locks that are held may be granted again", "ALTER TABLE … ENGINE = InnoDB")
	case flush != 1:
		found.Add(risk.Danger, "durability", fmt.Sprintf("innodb_flush_log_at_trx_commit is %d", flush), "after a crash the server may have forgotten locks that are held, and grants them again", "set innodb_flush_log_at_trx_commit = 1")
	case binary != 0 && sync != 1:
		found.Add(risk.Danger, "durability", fmt.Sprintf("there is a binary log, and sync_binlog is %d", sync), "what is not in it after a loss of power is rolled back: locks that are held are granted again", "set sync_binlog = 1")
	default:
		found.Add(risk.Fine, "durability", "every change is on disk before it is answered", "", "")
	}
	if blind := n.Warnings(); len(blind) > 0 {
		found.Add(risk.Warning, "replica", blind[0], "a replica that has stopped grants what its primary has granted", "give the user the rights that redlatch schema mysql prints")
	} else {
		found.Add(risk.Fine, "replica", "it is not set up to replicate from another server", "", "")
	}
	synchronous, err := n.semiSynchronous(ctx)
	switch {
	case err != nil:
		return found.All, err
	case binary != 0 && !exam.Guarded:
		found.Add(risk.Warning, "replication", "there is a binary log, and the guard is off", "a replica that is promoted lacks the last locks, and grants them again", "switch the guard on: --guard on")
	case binary != 0 && !synchronous:
		found.Add(risk.Advice, "replication", "there is a binary log, and replicas follow asynchronously",
			"one that is promoted is quarantined, since it may lack the last locks; a primary that lives on beside it, or is started again as it was, grants locks that are held there",
			"stop the primary before a promotion, and never start it again as it was; or switch on semi-synchronous replication, with a timeout (rpl_semi_sync_master_timeout) of a day or more")
	default:
		found.Add(risk.Fine, "replication", "nothing that endangers locks", "", "")
	}
	found.Add(risk.Fine, "wakes", "waiters are notified by KILL QUERY where another session of the user can; else they poll", "", "")
	return found.All, nil
}
