package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
	"github.com/redlatch/redlatch/test/bench/server"
)

// The columns of tables that are alike.
const (
	pairColumns      = "pair pair-p99 pair-max pairs ×pair commands client server on-server allocs"
	contendedColumns = "hand-overs rate over over-p99 wait wait-p99 wait-max jain never per-over per-command commands client server held"
	waitingColumns   = "count commands client server client-bytes goroutines drain drain-sent"
	keepColumns      = "count acquire extend release lock-bytes after-bytes client-bytes goroutines commands reads client server"
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
	s := measure.Situation{ID: id, Network: n, Rounds: 20, For: 100 * time.Millisecond, Warm: 50 * time.Millisecond}
	if n.Delay > 0 {
		s.Rounds, s.For = 8, 200*time.Millisecond
	}
	return []measure.Situation{s}
}

// goroutines is goroutines of one process that want one name.
func goroutines(count int, held, length time.Duration) []measure.Situation {
	return []measure.Situation{{ID: fmt.Sprintf("goroutines/%d/%dms", count, held.Milliseconds()), Count: count, Held: held, OneName: true,
		Rounds: 5, For: length, Warm: 200 * time.Millisecond}}
}

// contended is processes that want one name, contenders in turns or one after the
// other.
func contended(count int, held time.Duration, turns bool) []measure.Situation {
	return []measure.Situation{{ID: fmt.Sprintf("contended/%d/%dms", count, held.Milliseconds()), Work: measure.Processes, Turns: turns,
		Count: count, Held: held, Rounds: 5, For: time.Second, Warm: 300 * time.Millisecond, Settle: 200 * time.Millisecond}}
}

// waiting is goroutines that wait for a lock that is held, so many each time, with
// one client or a client each.
func waiting(id string, counts ...int) (list []measure.Situation) {
	for _, n := range counts {
		list = append(list, measure.Situation{ID: fmt.Sprintf("%s/%d", id, n), Work: measure.Wait, Count: n, Apart: id == "clients", Settle: 1500 * time.Millisecond, For: 2 * time.Second})
	}
	return list
}

// waitingTable is the table of waiters.
func waitingTable(nodes []int, contenders string, situations ...measure.Situation) report.Table {
	return report.Table{Heading: "## Waiting for a lock that is kept", Columns: waitingColumns, Situations: situations, Contenders: contenders, Nodes: nodes,
		Text: "Goroutines of one process wait, with one client or, under `clients`, with a client each, up to 256, while it holds the lock, and then have it one after the other, without holding it. Commands and CPU are those of a waiter and second, the keep-alive of the holder included; bytes are those of a waiter, with the stack of its goroutine."}
}

// keep is locks that are held.
func keep(id string, count int) measure.Situation {
	return measure.Situation{ID: fmt.Sprintf("%s/%d", id, count), Work: measure.Keep, Count: count}
}

// readers is readers of one name.
func readers(counts ...int) (list []measure.Situation) {
	for _, n := range counts {
		list = append(list, measure.Situation{ID: fmt.Sprintf("readers/%d", n), Work: measure.Extend, Count: n, Rounds: 5, For: 500 * time.Millisecond})
	}
	return list
}

var redis = report.Page{
	Key: "redis", File: "../../docs/testing/bench/README.md", Title: "redlatch beside its peers", Picture: "chart.svg",
	Programs: append(redisServer, [2]string{"etcd", ", three members"}),
	Modules: []string{"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
		"github.com/bsm/redislock", "go.etcd.io/etcd/client/v3"},
	Bounds: bounds,
	Charts: []report.Chart{
		{Title: "Uncontended pair, 1 server (shorter is better)", Figure: "pair", Cells: "pair/1"},
		{Title: "Uncontended pair, 5 servers (shorter is better)", Figure: "pair", Cells: "pair/5"},
		{Title: "64 goroutines on own names, pairs a second, 1 server (longer is better)", Figure: "rate", Cells: "own/64/1"},
		{Title: "64 goroutines on own names, pairs a second, 5 servers (longer is better)", Figure: "rate", Cells: "own/64/5"},
		{Title: "16 processes on one name, 1 ms held, hand-overs a second, 1 server (longer is better)", Figure: "hand-overs", Cells: "contended/16/1ms/1"},
		{Title: "The same, 99th percentile of the wait (shorter is better)", Figure: "wait-p99", Cells: "contended/16/1ms/1"},
		{Title: "First 20 pairs after one of five servers is frozen, mean (shorter is better)", Figure: "frozen-first", Cells: "freeze/5"},
	},
	Tables: []report.Table{
		{Heading: "## Uncontended pair", Base: "redsync-rueidis", Columns: pairColumns, Situations: pair("pair", server.Network{}),
			Contenders: keys(ours, "redsync-failfast floor-plain floor-scripts", peers),
			Text:       "One goroutine locks and releases; all contenders take turns of 100 ms, so that they meet the same disturbances. × is beside redsync over rueidis. The time on the server is that of the commands, by its own clock. The floors are raw sockets."},
		{Heading: "## 64 goroutines on names of their own", Columns: "rate least most ×rate commands client server", Base: "redsync-rueidis", Contenders: keys(ours, "redsync-failfast", peers),
			Situations: []measure.Situation{{ID: "own/64", Count: 64, Rounds: 7, For: 300 * time.Millisecond, Warm: 100 * time.Millisecond}},
			Text:       "In one process, contenders in turns: pairs a second, the median of the rounds; × is beside redsync over rueidis, round by round."},
		{Heading: "## Over links of 1 ms: uncontended pair", Columns: pairColumns, Situations: pair("linked-pair", linked), Base: "redsync-rueidis",
			Contenders: keys(ours, "redlatch-unwaited redsync-goredis redsync-rueidis redislock rueidislock"),
			Text:       "Every connection goes through a process that passes on what is sent half a millisecond later, in both directions."},
		{Heading: "## One link of 20 ms, four of 1 ms: uncontended pair", Columns: pairColumns, Nodes: []int{5},
			Contenders: keys(ours, "redsync-goredis redsync-rueidis redsync-failfast"), Situations: pair("slow-pair", slow)},
		{Heading: "## One of five servers frozen", Columns: "healthy healthy-mean frozen-first frozen-after", Nodes: []int{5}, Contenders: keys(ours, "redsync-goredis redsync-rueidis redsync-failfast"),
			Situations: []measure.Situation{{ID: "freeze", Work: measure.Freeze, Rounds: 5, For: 300 * time.Millisecond, Settle: 700 * time.Millisecond}},
			Text:       "SIGSTOP: its connections stay open, and nothing is answered. One goroutine locks and releases before that moment and after it; the first 20 pairs after it are ended after 3 s, and count as far as they came."},
		{Heading: "## Goroutines of one process on one name", Text: contendedText},
		{Heading: "### 16 goroutines, 0 ms held", Columns: contendedColumns, Contenders: keys(ours, "redlatch-alone", peers), Situations: goroutines(16, 0, 500*time.Millisecond)},
		{Heading: "### 64 goroutines, 0 ms held", Columns: contendedColumns, Contenders: "redlatch redlatch-alone", Situations: goroutines(64, 0, 500*time.Millisecond)},
		{Heading: "### 16 goroutines, 1 ms held", Columns: contendedColumns, Contenders: keys(ours, "redlatch-alone", peers), Situations: goroutines(16, time.Millisecond, time.Second)},
		{Heading: "## Processes on one name", Text: "They begin together and lock, hold and release until the time is over. Contenders take turns, each on servers of its own. " + contendedText},
		{Heading: "### 16 processes, 0 ms held", Columns: contendedColumns, Nodes: []int{1}, Contenders: keys(ours, peers), Situations: contended(16, 0, true)},
		{Heading: "### 16 processes, 1 ms held", Columns: contendedColumns, Contenders: keys(ours, peers), Situations: contended(16, time.Millisecond, true)},
		waitingTable([]int{1}, "redlatch", slices.Concat(waiting("waiting", 1, 16, 256, 4096), waiting("clients", 1, 16, 256, 4096))...),
		{Heading: "## Names used once", Columns: "count first last after-bytes client-bytes commands client server", Nodes: []int{1}, Contenders: "redlatch",
			Situations: []measure.Situation{{ID: "once/1000000", Work: measure.Once, Count: 1_000_000}},
			Text:       "64 goroutines lock and release a name once each. Bytes are those that the server and the client have more afterwards, for each name: on the server its fence."},
		{Heading: "## Readers of one name", Columns: "count extension commands client server", Nodes: []int{1}, Contenders: "redlatch-30s", Situations: readers(10, 1000, node.MaxHolders),
			Text: "One process holds all of them, and one goroutine extends one after the other. The TTL is so long that nothing else is extended meanwhile. The time of an extension is by the server's own clock."},
		{Heading: "## Held locks", Columns: keepColumns, Contenders: keys(ours, "rueidislock etcd"), Nodes: []int{1},
			Situations: []measure.Situation{keep("leases", 10_000)},
			Text:       keepText + " redsync and bsm/redislock have no keep-alive. etcd keeps all locks of a session alive by one lease."},
	},
	End: "Commands are those that clients sent over their connections; a script is one, whatever it runs inside. " +
		"With etcd they are gRPC messages from clients, those on streams included; what its members say to each other is not. " +
		"Server CPU is that of all servers together. Allocations include those of the bench, one for a pair.",
}

// keys joins lists of contenders.
func keys(lists ...string) string { return strings.Join(lists, " ") }

// cells returns the ids of contenders in a situation on some servers.
func cells(where, contenders string) string {
	return where + "/" + strings.Join(strings.Fields(contenders), " "+where+"/")
}

// The peers that redlatch is compared with in the bounds, on one server and on
// five. redsync's fail-fast is not one of them: its note says why.
const (
	onOne  = "redsync-goredis redsync-rueidis redislock rueidislock"
	onFive = "redsync-goredis redsync-rueidis"
)

// bounds are what redlatch must reach. What they are not beside a peer is beside
// what redlatch had in November 2026 on two cores: 44 allocations a pair, and 585
// hand-overs a second of 16 processes.
var bounds = []report.Bound{
	{Row: "pair, 1 server, beside redsync over rueidis", Of: "pair of pair/1/redlatch", Must: "<= 1.1 × pair/1/redsync-rueidis", Aim: "<= 1 × " + cells("pair/1", onOne)},
	{Row: "pair, 5 servers", Of: "pair of pair/5/redlatch", Must: "<= 1 × " + cells("pair/5", onFive), Aim: "<= 0.9 × " + cells("pair/5", onFive)},
	{Row: "64 own names, 1 server, pairs a second", Of: "rate of own/64/1/redlatch", Must: ">= 0.9 × " + cells("own/64/1", onOne), Aim: ">= 1 × " + cells("own/64/1", onOne)},
	{Row: "64 own names, 5 servers, pairs a second", Of: "rate of own/64/5/redlatch", Must: ">= 1.2 × " + cells("own/64/5", onFive), Aim: ">= 1.5 × " + cells("own/64/5", onFive)},
	{Row: "`Do` over links of 1 ms, release not waited for, 1 server", Of: "pair of linked-pair/1/redlatch-unwaited", Must: "<= 0.6 × " + cells("linked-pair/1", onOne), Aim: "<= 0.5 × " + cells("linked-pair/1", onOne)},
	{Row: "`Do` over links of 1 ms, release not waited for, 5 servers", Of: "pair of linked-pair/5/redlatch-unwaited", Must: "<= 0.6 × " + cells("linked-pair/5", onFive), Aim: "<= 0.5 × " + cells("linked-pair/5", onFive)},
	{Row: "16 goroutines of a process on one name, hand-overs a second, 1 server, beside hand-over off", Of: "hand-overs of goroutines/16/0ms/1/redlatch", Must: ">= 8 × goroutines/16/0ms/1/redlatch-alone"},
	{Row: "16 goroutines of a process on one name, acquisitions for a command", Of: "per-command of goroutines/16/0ms/1/redlatch", Aim: ">= 15"},
	{Row: "64 goroutines of a process on one name, hand-overs a second", Of: "hand-overs of goroutines/64/0ms/1/redlatch", Aim: ">= 1000000"},
	{Row: "16 goroutines of a process on one name, hand-overs a second, 5 servers, beside hand-over off", Of: "hand-overs of goroutines/16/0ms/5/redlatch", Must: ">= 20 × goroutines/16/0ms/5/redlatch-alone"},
	{Row: "16 goroutines, 1 ms held, hand-over off: hand-overs a second beside the best peer that is fair, 1 server", Of: "hand-overs of goroutines/16/1ms/1/redlatch-alone", Must: ">= 1 × fair " + fairOnOne},
	{Row: "16 goroutines, 1 ms held, hand-over off: hand-overs a second beside the best peer that is fair, 5 servers", Of: "hand-overs of goroutines/16/1ms/5/redlatch-alone", Must: ">= 1 × fair " + fairOnFive},
	{Row: "16 goroutines, 1 ms held, hand-over off: 99th percentile of a wait beside the fairest peer, 1 server", Of: "wait-p99 of goroutines/16/1ms/1/redlatch-alone", Must: "<= 0.5 × fairest " + fairOnOne},
	{Row: "16 goroutines, 1 ms held, hand-over off: 99th percentile of a wait beside the fairest peer, 5 servers", Of: "wait-p99 of goroutines/16/1ms/5/redlatch-alone", Must: "<= 0.5 × fairest " + fairOnFive},
	{Row: "16 processes on one name, 1 ms held, hand-overs a second, 1 server", Of: "hand-overs of contended/16/1ms/1/redlatch", Must: ">= 1 × " + cells("contended/16/1ms/1", onOne) + " contended/16/1ms/3/etcd", Aim: ">= 760"},
	{Row: "16 processes on one name, 1 ms held, hand-overs a second, 5 servers", Of: "hand-overs of contended/16/1ms/5/redlatch", Must: ">= 1 × " + cells("contended/16/1ms/5", onFive) + " contended/16/1ms/3/etcd"},
	{Row: "one of five servers frozen: the first 20 pairs, beside those before it", Of: "frozen-×first of freeze/5/redlatch", Must: "<= 1.5"},
	{Row: "one of five servers frozen: the median after them, beside that before it", Of: "frozen-×after of freeze/5/redlatch", Must: "<= 1.5"},
	{Row: "allocations a pair, 1 server", Of: "allocs of pair/1/redlatch", Must: "<= 22", Aim: "<= 10"},
	{Row: "extension with 1,000 readers of a name, beside 10", Of: "extension of readers/1000/1/redlatch-30s", Must: "<= 1.2 × readers/10/1/redlatch-30s"},
	{Row: "extension with 10,000 readers, the limit, beside 10", Of: "extension of readers/10000/1/redlatch-30s", Must: "<= 1.2 × readers/10/1/redlatch-30s"},
	{Row: "one link of 20 ms, four of 1 ms: pair", Of: "pair of slow-pair/5/redlatch", Must: "<= 1 × " + cells("slow-pair/5", onFive)},
}

var fairOnOne, fairOnFive = cells("goroutines/16/1ms/1", onOne) + " goroutines/16/1ms/3/etcd", cells("goroutines/16/1ms/5", onFive) + " goroutines/16/1ms/3/etcd"
