package main

import (
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

const keepText = "One process takes them, keeps them alive and releases them, and does nothing else. The times of scripts are by the server's own clock. " +
	"A read is one call of read(2): several requests may come in one. So may a script be for several requests: its time is then that of all of them."

var capacity = report.Page{
	Key: "capacity", Title: "What many locks cost", Programs: redisServer,
	Tables: []report.Table{{Heading: "## What an operation costs", Text: keepText, Contenders: "redlatch-30s", Columns: keepColumns,
		Situations: []measure.Situation{keep("capacity", 10_000), keep("capacity", 50_000), keep("capacity", 100_000)}}},
	End: "Memory and reads are those of each server, CPU and commands those of all. What is left after a lock is its fence.",
}
