package main

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
	"github.com/redlatch/redlatch/test/bench/server"
)

// The columns of tables that are alike.
const (
	pairColumns      = "pair pair-p99 commands client server"
	contendedColumns = "hand-overs rate beside over over-p99 wait wait-p99 wait-max jain never per-over commands client server"
	keepColumns      = "count acquire extend release lock-bytes after-bytes client-bytes commands client server"
)

const (
	ours  = "redlatch redlatch-goredis redlatch-rueidis"
	peers = "redsync-goredis redsync-rueidis redislock rueidislock etcd"

	contendedText = "A hand-over is an acquisition by a contender since whose own last release another one has acquired, and takes from the calling of the release to the next holder running: " +
		"a contender that mostly acquires again what it just released has many acquisitions and few hand-overs. Contenders that were still waiting at the end count with what they had waited. " +
		"CPU and commands are for each acquisition, where it is not said otherwise. Every history was checked for holds that overlap."
)

var redisServer = [][2]string{{"redis-server", ", `--save '' --appendonly no`"}}

// The networks. A round trip over a link takes a millisecond.
var (
	linked = server.Network{Delay: time.Millisecond}
	slow   = server.Network{Delay: time.Millisecond, Last: 20 * time.Millisecond}
)

// pair is one goroutine that locks and releases.
func pair(id string, n server.Network) []measure.Situation {
	s := measure.Situation{ID: id, Network: n, Rounds: 20, For: 100 * time.Millisecond}
	if n.Delay > 0 {
		s.Rounds, s.For = 8, 200*time.Millisecond
	}
	return []measure.Situation{s}
}

// own is goroutines of one process on names of their own.
func own(count int) measure.Situation {
	return measure.Situation{ID: fmt.Sprintf("own/%d", count), Count: count, Single: true, Rounds: 7, For: 300 * time.Millisecond}
}

// goroutines is goroutines of one process that want one name.
func goroutines(held, length time.Duration) []measure.Situation {
	return []measure.Situation{{ID: fmt.Sprintf("goroutines/16/%dms", held.Milliseconds()), Count: 16, Held: held, OneName: true,
		Rounds: 5, For: length}}
}

// contended is processes that want one name, contenders in turns.
func contended(held time.Duration) []measure.Situation {
	return []measure.Situation{{ID: fmt.Sprintf("contended/16/%dms", held.Milliseconds()), Work: measure.Processes, Turns: true,
		Count: 16, Held: held, Rounds: 5, For: time.Second}}
}

// keep is locks that are held.
func keep(id string, count int) measure.Situation {
	return measure.Situation{ID: fmt.Sprintf("%s/%d", id, count), Work: measure.Keep, Count: count}
}

//go:embed redis.md
var reasons string

var redis = report.Page{
	Key: "redis", File: "../../docs/testing/bench/README.md", Title: "redlatch beside its peers", Text: reasons,
	Programs: append(redisServer, [2]string{"etcd", ", three members"}),
	Modules: []string{"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
		"github.com/bsm/redislock", "go.etcd.io/etcd/client/v3"},
	Tables: []report.Table{
		{Heading: "## Uncontended pair", Columns: pairColumns, Situations: pair("pair", server.Network{}), Contenders: keys(ours, "redsync-failfast", peers),
			Text: "One goroutine locks and releases; all contenders take turns of 100 ms, so that they meet the same disturbances."},
		{Heading: "## 64 and 1,000 goroutines on names of their own", Contenders: keys(ours, "redsync-failfast", peers),
			Columns:    "rate beside alone scales commands client server",
			Situations: []measure.Situation{own(64), own(1000)},
			Text:       "One process, contenders in turns: pairs a second, with all processors and with GOMAXPROCS=1. Native is redsync over rueidis."},
		{Heading: "## Over links of 1 ms: uncontended pair", Columns: pairColumns, Situations: pair("linked-pair", linked),
			Contenders: keys(ours, "redsync-goredis redsync-rueidis redislock rueidislock"),
			Text:       "Every connection goes through the bench, which passes on what is sent half a millisecond later, in both directions."},
		{Heading: "## One link of 20 ms, four of 1 ms: uncontended pair", Columns: pairColumns, Nodes: []int{5},
			Contenders: keys(ours, "redsync-goredis redsync-rueidis redsync-failfast"), Situations: pair("slow-pair", slow)},
		{Heading: "## Goroutines of one process on one name", Text: contendedText},
		{Heading: "### 16 goroutines, 0 ms held", Columns: contendedColumns, Contenders: keys(ours, peers), Situations: goroutines(0, 500*time.Millisecond)},
		{Heading: "### 16 goroutines, 1 ms held", Columns: contendedColumns, Contenders: keys(ours, peers), Situations: goroutines(time.Millisecond, time.Second)},
		{Heading: "## Processes on one name", Text: "They begin together and lock, hold and release until the time is over. Contenders take turns, each on servers of its own. " + contendedText},
		{Heading: "### 16 processes, 0 ms held", Columns: contendedColumns, Nodes: []int{1}, Contenders: keys(ours, peers), Situations: contended(0)},
		{Heading: "### 16 processes, 1 ms held", Columns: contendedColumns, Contenders: keys(ours, peers), Situations: contended(time.Millisecond)},
		{Heading: "## Held locks", Columns: keepColumns, Contenders: keys(ours, "rueidislock etcd"), Nodes: []int{1},
			Situations: []measure.Situation{keep("leases", 10_000)},
			Text:       keepText + " redsync and bsm/redislock have no keep-alive. etcd keeps all locks of a session alive by one lease."},
	},
	End: "Commands are those that clients sent over their connections; a script is one, whatever it runs inside. " +
		"With etcd they are gRPC messages from clients, those on streams included; what its members say to each other is not. " +
		"Server CPU is that of all servers together.",
}

// keys joins lists of contenders.
func keys(lists ...string) string { return strings.Join(lists, " ") }
