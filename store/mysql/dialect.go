package mysql

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
)

// dialect has what MariaDB and MySQL express in different ways.
type dialect struct {
	// server is an expression that identifies the server.
	server string
	// fitness is an expression that is 'fit' if this session may write locks on
	// this server, and else the reason why not, a key of unfit. quick is the same
	// for a server that has never been a replica; else it is 'replicated'.
	fitness, quick string
	// limited returns a statement that the server ends after a time.
	limited func(text string, after time.Duration) string
	// sources is a query for the servers that this one is set up to replicate
	// from, seeSources the right that it needs, and forget the statement that
	// removes them.
	sources, seeSources, forget string
}

// dialectOf returns the dialect of a server by its version.
func dialectOf(version string) *dialect {
	if strings.Contains(strings.ToLower(version), "mariadb") {
		return &mariaDB
	}
	return &mySQL
}

// common is the part of fitness that both have. A statement that is not committed
// at its end grants a lock that others do not see. A replica executes a statement
// that is logged as text anew, as another server: it finds that the server is not
// the one that was read, and lacks every lock.
// Names and states are bytes: a server that converts them from one character set to
// another gives one name several rows.
const common = `CASE WHEN @@SESSION.autocommit <> 1 THEN 'autocommit'
	WHEN @@SESSION.character_set_client <> @@SESSION.character_set_connection THEN 'character_set'
	WHEN @@GLOBAL.log_bin <> 0 AND @@SESSION.binlog_format = 'STATEMENT' THEN 'binlog_format'
	WHEN CONCAT('=', @@GLOBAL.read_only) NOT IN ('=0', '=OFF') THEN 'read_only'`

// closed is the part of fitness that has MariaDB look for a transaction. It is 0 in a
// statement that is a transaction of its own.
const closed = ` WHEN @@in_transaction <> 0 THEN 'transaction'`

var mariaDB = dialect{
	server: "CONCAT('mariadb/', @@GLOBAL.gtid_domain_id, '/', @@GLOBAL.server_id, '/', @@GLOBAL.hostname, ':', @@GLOBAL.port)",
	// A server without a position has never executed what another one sent. The
	// status takes longer than all the rest of a statement.
	quick: common + closed + ` WHEN @@GLOBAL.gtid_slave_pos <> x'' THEN 'replicated' ELSE 'fit' END`,
	fitness: common + closed + ` WHEN COALESCE((SELECT variable_value FROM information_schema.session_status
			WHERE variable_name = 'SLAVES_RUNNING'), 'unknown') <> '0' THEN 'replica' ELSE 'fit' END`,
	// It is set for this statement alone. A shorter limit of the session stays.
	limited: func(text string, after time.Duration) string {
		return fmt.Sprintf("SET STATEMENT max_statement_time = IF(@@SESSION.max_statement_time BETWEEN 0.000001 AND %[1]f, @@SESSION.max_statement_time, %[1]f) FOR %[2]s",
			after.Seconds(), text)
	},
	sources:    "SHOW ALL SLAVES STATUS",
	seeSources: "SLAVE MONITOR ON *.*", forget: "STOP ALL SLAVES; RESET SLAVE ALL",
}

// A statement that is a transaction of its own is shown as one, once it has opened a
// table. So where transactions are not shown, nothing is granted.
var mySQL = dialect{
	server: "CONCAT('mysql/', @@GLOBAL.server_uuid)",
	quick:  "'replicated'",
	fitness: common + ` WHEN EXISTS (SELECT 1 FROM performance_schema.replication_applier_status
		WHERE service_state <> 'OFF' AND LEFT(channel_name, 18) <> 'group_replication_') THEN 'replica'
		ELSE CASE COALESCE((SELECT CONCAT(state, autocommit) FROM performance_schema.events_transactions_current WHERE thread_id =
			(SELECT thread_id FROM performance_schema.threads WHERE processlist_id = CONNECTION_ID())), '')
		WHEN 'ACTIVENO' THEN 'transaction' WHEN 'ACTIVEYES' THEN 'fit' ELSE 'unseen' END END`,
	limited: func(text string, after time.Duration) string {
		if read, ok := strings.CutPrefix(text, "SELECT "); ok {
			return fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */ %s", after.Milliseconds(), read)
		}
		return text
	},
	sources: `SELECT host, port FROM performance_schema.replication_connection_configuration
		WHERE LEFT(channel_name, 18) <> 'group_replication_'`,
	seeSources: "SELECT ON performance_schema.replication_connection_configuration", forget: "STOP REPLICA; RESET REPLICA ALL (before 8.0.22: STOP SLAVE; RESET SLAVE ALL)",
}

// unfit says what to do about a session or a server that may not write locks.
var unfit = map[string]string{
	"autocommit":    "autocommit is off in this session, so a lock would not be committed: switch it on (autocommit=1 in the data source name, or in init_connect)",
	"binlog_format": "binlog_format is STATEMENT, so a replica would lack every lock: set it to ROW or MIXED",
	"character_set": "character_set_client and character_set_connection differ in this session, so names would be converted: set both by SET NAMES, or collation in the data source name",
	"timestamp":     "the clock of this session was set by hand, so locks would expire early: do not set timestamp (in the data source name, or in init_connect)",
	"transaction":   "a transaction is open in this session, so a lock would not be committed: do not begin one on a pool that is given to a node, nor in init_connect",
	"unseen":        "it cannot be seen whether a transaction is open in this session, so a lock might not be committed: switch performance_schema on, with its consumer events_transactions_current and its instrument transaction",
	"read_only":     "this server is read-only, as replicas are: give the address of the primary",
	"replica":       "this server replicates from another one: give the address of the primary. Replication in a circle is not supported",
}

// texts are the statements, for one table.
type texts struct {
	read, update, insert, mark, first, rows, remove, undo, stampedUpdate, stampedInsert string
	// These are of places.
	queue, rank, lapses, put, drop, renew, live, list, ofProcess, ofDead string
}

// statements returns them. The marker's name is a literal of hexadecimal digits:
// under one of the server's modes an empty string is NULL.
//
// The row with the marker is always there, marked or not. Every other write locks
// it, so that it does not change while the write waits for its own row. MariaDB
// executes an UPDATE with a subquery for it a quarter slower, and one with a join ten
// times slower. This INSERT finds its row, and replaces it if it is the one that was
// read. It locks the row itself for writing at once, so two of them cannot deadlock.
// See write for a row that is missing.
//
// Every check is in every statement. Prepared, all of fitness takes a fifth of it. To
// judge a connection once would save no more than that, and miss what changes later:
// a proxy hands over another session, an operator makes the server a replica.
func (d *dialect) statements(table, places, fitness string) texts {
	const present = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	const living = ` FROM PLACES_ p STRAIGHT_JOIN PLACES_ a ON a.name = x'' AND a.ticket = 0 AND a.waiter = p.process AND a.lapses > NOW_ WHERE p.name `
	const this = ` WHERE name = ? AND ticket = ? AND waiter = ? AND lapses = ?`
	put := func(s string) string {
		s = strings.ReplaceAll(s, "SAME_", "SERVER_ = ? AND FITNESS_ = 'fit'")
		return strings.NewReplacer("STATE_", "CAST(? AS BINARY)", "AND TIMELY_", "", "TABLE_", table, "PLACES_", places, "SERVER_", d.server, "FITNESS_", fitness,
			"NOW_", present, "LAPSES_", fmt.Sprintf("%s + %d", present, casnode.PlaceLease.Microseconds()),
			"LATER_", "TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))").Replace(s)
	}
	// stamped has the statement compare the clock, and write by how much it is later.
	// It is the time at which the statement began, as in a read. If that is not the
	// present, the session's clock was set, or the statement waited: a read decides.
	stamped := func(s string) string {
		return put(strings.NewReplacer("STATE_", "CONCAT(UNHEX(LPAD(HEX(NOW_ - ?), 16, '0')), ?)", "TIMELY_", "NOW_ BETWEEN ? AND ? AND LATER_ BETWEEN 0 AND 5000").Replace(s))
	}
	// A server may take the parameters of a SELECT for text. They are bytes.
	const insert = `INSERT INTO TABLE_ (version, state, name) SELECT ?, STATE_, CAST(? AS BINARY)
		FROM TABLE_ m WHERE SAME_ AND TIMELY_ AND m.name = x'' AND m.version = ? LOCK IN SHARE MODE`
	const update = insert + ` ON DUPLICATE KEY UPDATE state = IF(TABLE_.version = ?, VALUES(state), TABLE_.state),
		version = IF(TABLE_.version = ?, VALUES(version), TABLE_.version)`
	return texts{
		// It waits for nobody, so the time at which it began is the time of the
		// read. UTC: the session may have any time zone. A session can set that
		// time, but not SYSDATE: see checkClock. The marker's row is always there.
		read: put(`SELECT NOW_, LATER_, SERVER_, FITNESS_, l.version, l.state, m.version, m.state
			FROM TABLE_ m LEFT JOIN TABLE_ l ON l.name = COALESCE(?, x'') WHERE m.name = x''`),
		// To find the first that live, and the rank, in one statement with the row takes
		// the server five times as long as these two.
		queue: put(`SELECT NOW_, ticket, waiter, process FROM PLACES_ WHERE name = COALESCE(?, x'') AND ticket >= ? ORDER BY ticket, waiter LIMIT ? OFFSET ?`),
		rank: put(`SELECT COUNT(*), COALESCE(MAX(ticket = ? AND waiter = ?), 0) FROM PLACES_
			WHERE name = COALESCE(?, x'') AND ticket <= ? AND (ticket < ? OR waiter <= ?)`),
		lapses: put(`SELECT lapses FROM PLACES_ WHERE name = x'' AND ticket = 0 AND waiter = ?`),
		put:    put(`INSERT INTO PLACES_ (name, ticket, waiter, process, lapses) VALUES (?, ?, ?, ?, 0)`),
		drop:   put(`DELETE FROM PLACES_` + this),
		renew:  put(`UPDATE PLACES_ SET lapses = LAPSES_ WHERE name = x'' AND ticket = 0 AND waiter = ? AND lapses > NOW_`),
		live: put(`INSERT INTO PLACES_ (name, ticket, waiter, process, lapses) VALUES (x'', 0, ?, ?, LAPSES_)
			ON DUPLICATE KEY UPDATE lapses = VALUES(lapses)`),
		list:      put(`SELECT p.name, p.ticket, p.waiter, p.process, p.lapses` + living + `> x'' AND p.name = COALESCE(?, p.name) ORDER BY p.name, p.ticket, p.waiter`),
		ofProcess: put(`SELECT name, ticket, waiter, process, lapses FROM PLACES_ WHERE name = ? AND process = ?`),
		ofDead: put(`SELECT p.name, p.ticket, p.waiter, p.process, p.lapses FROM PLACES_ p
			LEFT JOIN PLACES_ a ON a.name = x'' AND a.ticket = 0 AND a.waiter = p.process AND a.lapses > NOW_ WHERE a.name IS NULL`),
		update: put(update), stampedUpdate: stamped(update),
		insert: put(insert), stampedInsert: stamped(insert),
		mark:  put(`UPDATE TABLE_ SET version = ?, state = ? WHERE name = x'' AND version = ? AND SAME_`),
		first: put(`INSERT INTO TABLE_ (version, state, name) SELECT ?, ?, x'' FROM (SELECT 1) one WHERE FITNESS_ = 'fit'`),
		rows:  put(`SELECT name, version, state FROM TABLE_ WHERE name > COALESCE(?, x'') ORDER BY name LIMIT ?`),
		undo:  put(`DELETE FROM TABLE_ WHERE name = ? AND version = ?`),
		// By names, so that no range and no gap is locked.
		remove: put(`DELETE FROM TABLE_ WHERE SAME_ AND name IN (NAMES_) AND version IN (NAMES_)`),
	}
}
