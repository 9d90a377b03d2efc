package mysql

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/internal/rownode"
	"github.com/redlatch/redlatch/node"
)

var _ node.Examiner = (*Node)(nil)

// healthText asks for the version, whether a commit is on disk when it is
// answered, whether there is a binary log and when that is on disk, and the
// engine of the table.
const healthText = `SELECT VERSION(), @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog,
	COALESCE((SELECT engine FROM information_schema.tables WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?), '')`

// Examine checks the server's durability and replication, and tries the requests
// of a lock.
func (n *Node) Examine(ctx context.Context, exam node.Exam) ([]node.Finding, error) {
	found := rownode.Findings{Node: n.String()}
	if err := n.Try(ctx, exam); err != nil {
		if _, _, down := n.Identity(ctx); down != nil {
			return nil, down
		}
		found.Rights(err, "redlatch schema mysql")
	} else {
		found.Rights(nil, "")
	}
	var version, engine string
	var flush, binary, sync int
	database, table := n.store.where()
	if err := n.store.db.QueryRowContext(ctx, healthText, database, table).Scan(&version, &flush, &binary, &sync, &engine); err != nil {
		return found.All, explain(err)
	}
	found.Add(node.Fine, "version", version, "", "")
	switch {
	case engine != "InnoDB":
		found.Add(node.Danger, "durability", fmt.Sprintf("the engine of the table is %q", engine), "it has no transactions: after a crash locks that are held may be granted again", "ALTER TABLE … ENGINE = InnoDB")
	case flush != 1:
		found.Add(node.Danger, "durability", fmt.Sprintf("innodb_flush_log_at_trx_commit is %d", flush), "after a crash the server may have forgotten locks that are held, and grants them again", "set innodb_flush_log_at_trx_commit = 1")
	case binary != 0 && sync != 1:
		found.Add(node.Danger, "durability", fmt.Sprintf("there is a binary log, and sync_binlog is %d", sync), "what is not in it after a loss of power is rolled back: locks that are held are granted again", "set sync_binlog = 1")
	default:
		found.Add(node.Fine, "durability", "every change is on disk before it is answered", "", "")
	}
	if binary != 0 && !exam.Guarded {
		found.Add(node.Warning, "replication", "there is a binary log, and the guard is off", "a replica that is promoted lacks the last locks, and grants them again", "switch the guard on: --guard on")
	} else {
		found.Add(node.Fine, "replication", "nothing that endangers locks", "", "")
	}
	found.Add(node.Fine, "wakes", "waiters poll: the server cannot notify them", "", "")
	return found.All, nil
}
