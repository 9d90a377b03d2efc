package main

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
	"github.com/redlatch/redlatch/test/bench/server"
)

const onPostgres, onMariaDB = "redlatch-postgres pg-advisory pglock shedlock-postgres", "redlatch-mariadb get-lock shedlock-mariadb"

var databases = report.Page{
	Key: "databases", File: "../../docs/testing/bench/databases.md", Title: "Locks in a database, redlatch beside its peers",
	Programs: [][2]string{{"psql", ", without fsync"}, {"mariadbd", ", `innodb_flush_log_at_trx_commit=2`"}},
	Modules:  []string{"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "cirello.io/pglock"},
	Tables: []report.Table{
		{Heading: "## Uncontended pair", Text: "One goroutine locks and releases; the contenders of a database take turns of 100 ms.",
			Columns: pairColumns, Situations: pair("pair", server.Network{}), Contenders: keys(onPostgres, onMariaDB), Nodes: []int{1}},
		{Heading: "## Contended: 16 processes, 1 ms held", Text: contendedText, Columns: contendedColumns, Contenders: keys(onPostgres, onMariaDB), Nodes: []int{1},
			Situations: contended(16, time.Millisecond, false)},
		waitingTable([]int{1}, "redlatch-postgres pg-advisory shedlock-postgres "+onMariaDB, waiting("waiting", 16)...),
	},
	End: "Commands are the statements that the server executed: a transaction that a client begins and commits by itself has two more. " +
		"The servers do not sync to disk, so the disk is in none of the numbers. Server CPU is that of all processes of the server.",
}

// sharedColumns are those of locks that several hold at once.
const sharedColumns = "hand-overs ×hand-overs rate ×rate least most wait wait-p99 wait-max %s broken jain per-over commands client server held"

// turns is 16 processes in turns, each contender on servers of its own.
func turns(id string, slots, writeEvery int) []measure.Situation {
	return []measure.Situation{{ID: id, Work: measure.Processes, Turns: true, Count: 16, Held: time.Millisecond, Slots: slots, WriteEvery: writeEvery,
		Rounds: 5, For: 1500 * time.Millisecond, Warm: 2 * time.Second, Settle: 300 * time.Millisecond}}
}

var family = report.Page{
	Key: "family", File: "../../docs/testing/bench/family.md", Title: "Slots and readers beside their peers",
	Text: "What the numbers say is how the rows of a table compare: all its contenders are ready at once, each on servers of its own, and take turns in 5 rounds of 1.5 s.\n\n" +
		"Each contender asks, holds for 1 ms, releases, and asks again. Contenders are processes with connections of their own. " +
		"The beginning of every round does not count, nor does a first round. Contenders that were still waiting at the end count with what they had waited. " +
		"A hand-over is an acquisition by a contender since whose own last release another one has acquired. CPU and commands are for each acquisition, where it is not said otherwise; × is beside redlatch on as many servers, round by round, and of the rounds the median. " +
		"A hold counts from the moment at which its contender has the lock to the one at which it asks to release it.",
	Programs: redisServer,
	Modules:  []string{"github.com/redis/rueidis", "github.com/go-redsync/redsync/v4"},
	Tables: []report.Table{
		{Heading: "## 16 contenders for 3 slots", Situations: turns("slots", 3, 0), Nodes: []int{1, 3}, Base: "redlatch",
			Contenders: "redlatch redsync-names semaphore", Columns: fmt.Sprintf(sharedColumns, "readers")},
		{Heading: "## 16 contenders, 90 % of the requests to read, 10 % to write", Situations: turns("readers", 0, 10), Nodes: []int{1, 3}, Base: "redlatch",
			Contenders: "redlatch", Columns: fmt.Sprintf(sharedColumns, "writer writer-p99 writer-max readers writers"), Text: "The wait is that of readers, where it is not said otherwise."},
	},
	End: "redsync, bsm/redislock and rueidislock have neither slots nor readers, and redis-semaphore has no readers. " +
		"Commands are those that clients sent, as the servers count them, without those of the bench.",
}

const keepText = "One process takes them, keeps them alive and releases them, and does nothing else. The times of scripts are by the server's own clock. " +
	"A read is one call of read(2): several requests may come in one. So may a script be for several requests: its time is then that of all of them."

var capacity = report.Page{
	Key: "capacity", Title: "What many locks cost", Programs: redisServer,
	Tables: []report.Table{{Heading: "## What an operation costs", Text: keepText, Contenders: "redlatch-30s", Columns: keepColumns,
		Situations: []measure.Situation{keep("capacity", 10_000), keep("capacity", 50_000), keep("capacity", 100_000)}}},
	End: "Memory and reads are those of each server, CPU and commands those of all. What is left after a lock is its fence.",
}
