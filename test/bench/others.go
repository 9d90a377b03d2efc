package main

import (
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
	"github.com/redlatch/redlatch/test/bench/server"
)

const onPostgres, onMariaDB = "redlatch-postgres pg-advisory shedlock-postgres", "redlatch-mariadb get-lock shedlock-mariadb"

var databases = report.Page{
	Key: "databases", File: "../../docs/testing/bench/databases.md", Title: "Locks in a database, redlatch beside its peers",
	Programs: [][2]string{{"psql", ", without fsync"}, {"mariadbd", ", `innodb_flush_log_at_trx_commit=2`, buffer pool and log of the default sizes"}},
	Modules:  []string{"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"},
	Tables: []report.Table{
		{Heading: "## Uncontended pair", Text: "One goroutine locks and releases; the contenders of a database take turns of 100 ms.",
			Columns: pairColumns, Situations: pair("pair", server.Network{}), Contenders: keys(onPostgres, onMariaDB), Nodes: []int{1}},
		{Heading: "## Contended: 16 processes, 1 ms held", Text: contendedText, Columns: contendedColumns, Contenders: keys(onPostgres, onMariaDB), Nodes: []int{1},
			Situations: contended(time.Millisecond)},
	},
	End: "Commands are the statements that the server executed: a transaction that a client begins and commits by itself has two more. " +
		"The servers do not sync to disk, so the disk is in none of the numbers. Server CPU is that of all processes of the server.",
}

const onEtcd, onZooKeeper = "redlatch-etcd etcd", "redlatch-zookeeper zk-lock"

var consensus = report.Page{
	Key: "consensus", File: "../../docs/testing/bench/consensus.md", Title: "Locks on etcd and ZooKeeper, redlatch beside their own",
	Programs: [][2]string{{"etcd", ", three members, defaults"}, {"zookeeper", ", three servers, `forceSync=yes` as is the default"}},
	Modules:  []string{"go.etcd.io/etcd/client/v3", "github.com/go-zookeeper/zk"},
	Tables: []report.Table{
		{Heading: "## Uncontended pair", Columns: "pair pair-p99 writes commands client server", Contenders: keys(onEtcd, onZooKeeper), Nodes: []int{server.Members},
			Situations: []measure.Situation{{ID: "pair", Rounds: 10, For: 500 * time.Millisecond}},
			Text:       "One goroutine locks and releases; the contenders of a cluster take turns of half a second."},
		{Heading: "## Contended: 16 processes, 1 ms held", Columns: "hand-overs rate beside over over-p99 wait wait-p99 wait-max jain never writes commands client server", Contenders: keys(onEtcd, onZooKeeper), Nodes: []int{server.Members},
			Situations: []measure.Situation{{ID: "contended/16/1ms", Work: measure.Processes, Turns: true, Count: 16, Held: time.Millisecond,
				Rounds: 5, For: 3 * time.Second}},
			Text: "Contenders take turns, each on a cluster of its own. " + contendedText},
	},
	End: "Writes are what the cluster agreed on and wrote to its disks: with etcd entries of the log, with ZooKeeper transactions; refused ones count, and so does what keeps sessions. " +
		"Commands are gRPC messages or packets from clients, keep-alives and pings included; what members say to each other is not. Server CPU is that of all members.",
}

const keepText = "One process takes them, keeps them alive and releases them, and does nothing else. The times of scripts are by the server's own clock. " +
	"A script may be for several requests: its time is then that of all of them."

var capacity = report.Page{
	Key: "capacity", Title: "What many locks cost", Programs: redisServer,
	Tables: []report.Table{{Heading: "## What an operation costs", Text: keepText, Contenders: "redlatch-30s", Columns: keepColumns,
		Situations: []measure.Situation{keep("capacity", 10_000), keep("capacity", 50_000), keep("capacity", 100_000)}}},
	End: "Memory is that of each server, CPU and commands those of all. What is left after a lock is its fence.",
}
