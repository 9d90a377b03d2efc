package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
	"github.com/redlatch/redlatch/test/bench/server"
)

// The columns of tables that are alike.
const (
	pairColumns      = "pair pair-p99 pair-max pairs ×pair commands client server on-server allocs"
	contendedColumns = "hand-overs rate over over-p99 wait wait-p99 wait-max jain never per-over commands client server held"
	waitingColumns   = "count commands client"
	keepColumns      = "count acquire extend release lock-bytes after-bytes client-bytes goroutines commands reads client server"
)

const (
	ours  = "redlatch redlatch-goredis"
	peers = "redsync-goredis redsync-rueidis redislock rueidislock etcd"

	contendedText = "Processes of their own on one name, which begin together and lock, hold and release until the time is over. " +
		"A hand-over is an acquisition by a contender since whose own last release another one has acquired, and takes from the calling of the release to the next holder running: " +
		"a contender that mostly acquires again what it just released has many acquisitions and few hand-overs. Contenders that were still waiting at the end count with what they had waited. " +
		"CPU and commands are for each acquisition, where it is not said otherwise. Every history was checked for holds that overlap."
)

var redisServer = [][2]string{{"redis-server", ", `--save '' --appendonly no`"}}

// The networks. A round trip over a link takes a millisecond.
var (
	linked = server.Network{Delay: time.Millisecond}
	slow   = server.Network{Delay: time.Millisecond, Last: 20 * time.Millisecond}
	lossy  = server.Network{Delay: time.Millisecond, LoseEvery: time.Second, LoseFor: 200 * time.Millisecond}
)

// pair is one goroutine that locks and releases.
func pair(id string, frozen bool, n server.Network) []measure.Situation {
	return []measure.Situation{{ID: id, Frozen: frozen, Network: n, Rounds: 30, For: 100 * time.Millisecond, Warm: 50 * time.Millisecond}}
}

// contended is processes that want one name.
func contended(id string, count int, held time.Duration, frozen bool, n server.Network) []measure.Situation {
	s := measure.Situation{ID: fmt.Sprintf("%s/%d/%dms", id, count, held.Milliseconds()), Work: measure.Processes,
		Count: count, Held: held, Frozen: frozen, Network: n, For: 5 * time.Second}
	if _, threads := s.Processes(); threads > 1 {
		s.For = 10 * time.Second
	}
	return []measure.Situation{s}
}

// waiting is processes that wait for a lock that is held.
func waiting(count int) []measure.Situation {
	return []measure.Situation{{ID: fmt.Sprintf("waiting/%d", count), Work: measure.Processes, Count: count, Kept: true,
		Settle: time.Second, For: 4 * time.Second}}
}

// waitingTable is the table of waiters.
func waitingTable(nodes []int, contenders string) report.Table {
	return report.Table{Heading: "## Waiting for a lock that is kept", Columns: waitingColumns, Situations: waiting(16), Contenders: contenders, Nodes: nodes,
		Text: "Processes that wait, while another holds the lock all the time. Commands and CPU are those of a waiter and second; the holder's own commands are included."}
}

// keep is locks that are held.
func keep(id string, count int) measure.Situation {
	return measure.Situation{ID: fmt.Sprintf("%s/%d", id, count), Work: measure.Keep, Count: count, For: 10 * time.Second}
}

// crowds are the tables of contenders, by how many they are and how long they
// hold.
func crowds() []report.Table {
	list := []report.Table{{Heading: "## Contended", Text: contendedText}}
	for _, count := range []int{16, 128, 1000} {
		for _, held := range []time.Duration{0, time.Millisecond} {
			s := contended("contended", count, held, false, server.Network{})
			processes, threads := s[0].Processes()
			t := report.Table{Situations: s, Contenders: keys(ours, peers), Columns: contendedColumns}
			t.Heading = fmt.Sprintf("### %d processes, %d ms held", processes, held.Milliseconds())
			if threads > 1 {
				t.Heading = fmt.Sprintf("### %d contenders, %d processes of %d, %d ms held", count, processes, threads, held.Milliseconds())
			}
			list = append(list, t)
		}
	}
	return list
}

var redis = report.Page{
	Key: "redis", File: "../../docs/testing/bench/README.md", Title: "redlatch beside its peers",
	Programs: append(redisServer, [2]string{"etcd", ", three members"}),
	Modules: []string{"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
		"github.com/bsm/redislock", "go.etcd.io/etcd/client/v3"},
	Goals: goals,
	Tables: append([]report.Table{
		{Heading: "## Uncontended pair", Base: "redsync-rueidis", Columns: pairColumns, Situations: pair("pair", false, server.Network{}),
			Contenders: keys(ours, "redlatch-rueidis redsync-failfast", peers),
			Text:       "One goroutine locks and releases; all contenders take turns of 100 ms, so that they meet the same disturbances. × is beside redsync over rueidis. The time on the server is that of the commands, by its own clock."},
		{Heading: "## 64 goroutines on names of their own", Columns: "rate least most ×rate commands client server", Base: "redsync-rueidis", Contenders: keys(ours, "redlatch-rueidis redsync-failfast", peers),
			Situations: []measure.Situation{{ID: "own/64", Count: 64, Rounds: 8, For: 400 * time.Millisecond, Warm: 100 * time.Millisecond}},
			Text:       "In one process, contenders in turns: pairs a second, the median of the rounds; × is beside redsync over rueidis, round by round."},
	}, append(crowds(),
		waitingTable(nil, keys(ours, peers)),
		report.Table{Heading: "## One of five servers frozen: uncontended pair", Columns: pairColumns, Situations: pair("frozen-pair", true, server.Network{}),
			Contenders: keys(ours, "redsync-goredis redsync-rueidis redsync-failfast"), Nodes: []int{5}, Text: "SIGSTOP: its connections stay open, and nothing is answered."},
		report.Table{Heading: "## One of five servers frozen: contended", Columns: contendedColumns, Nodes: []int{5}, Contenders: keys(ours, "redsync-goredis redsync-rueidis redsync-failfast"),
			Situations: contended("frozen-contended", 16, time.Millisecond, true, server.Network{})},
		report.Table{Heading: "## Over links of 1 ms: uncontended pair", Columns: pairColumns, Situations: pair("linked-pair", false, linked),
			Contenders: keys(ours, "redsync-goredis redsync-rueidis redislock rueidislock"),
			Text:       "Every connection goes through a process that passes on what is sent half a millisecond later, in both directions."},
		report.Table{Heading: "## Over links of 1 ms: contended", Columns: contendedColumns, Nodes: []int{5}, Contenders: keys(ours, "redsync-goredis redsync-rueidis"),
			Situations: contended("linked-contended", 16, time.Millisecond, false, linked)},
		report.Table{Heading: "## One link of 20 ms, four of 1 ms: uncontended pair", Columns: pairColumns, Nodes: []int{5},
			Contenders: keys(ours, "redsync-goredis redsync-rueidis redsync-failfast"), Situations: pair("slow-pair", false, slow)},
		report.Table{Heading: "## One link of 20 ms, four of 1 ms: contended", Columns: contendedColumns, Nodes: []int{5}, Contenders: keys(ours, "redsync-goredis redsync-rueidis"),
			Situations: contended("slow-contended", 16, time.Millisecond, false, slow)},
		report.Table{Heading: "## Over links that are lost now and then: uncontended pair", Columns: pairColumns, Nodes: []int{5}, Contenders: keys(ours, "redsync-goredis redsync-rueidis"),
			Situations: pair("lossy-pair", false, lossy),
			Text:       "Each second another link of 1 ms passes on nothing for 200 ms. What was sent meanwhile arrives after that."},
		report.Table{Heading: "## Held leases", Columns: keepColumns, Contenders: keys(ours, "rueidislock etcd"),
			Situations: []measure.Situation{keep("leases", 10_000)},
			Text:       keepText + " redsync and bsm/redislock have no keep-alive. etcd keeps all locks of a session alive by one lease."},
	)...),
	End: "Commands are those that clients sent over their connections; a script is one, whatever it runs inside. " +
		"With etcd they are gRPC messages from clients, those on streams included; what its members say to each other is not. " +
		"Server CPU is that of all servers together. Allocations include those of the bench, one for a pair.",
}

// keys joins lists of contenders.
func keys(lists ...string) string { return strings.Join(lists, " ") }

// goals are what redlatch must reach. The bounds of waits are twice what raw
// wake-ups by BLPOP took, which promise nothing, on two cores in November 2026.
const goals = `
pair of pair/1/redlatch <= 1.05 × pair/1/redsync-rueidis
pair of pair/1/redlatch <= 1 × pair/1/redsync-goredis
pair of pair/1/redlatch-goredis <= 1.15 × pair/1/redsync-goredis
pair of pair/5/redlatch <= 1.35 × pair/5/redsync-rueidis
pair of pair/5/redlatch-goredis <= 1.3 × pair/5/redsync-goredis
rate of own/64/1/redlatch >= 0.7 × own/64/1/redsync-rueidis
rate of own/64/1/redlatch-goredis >= 0.9 × own/64/1/redsync-goredis
rate of own/64/5/redlatch >= 0.7 × own/64/5/redsync-rueidis
rate of own/64/5/redlatch-goredis >= 0.9 × own/64/5/redsync-goredis
pair of linked-pair/1/redlatch <= 1.05 × linked-pair/1/redsync-goredis linked-pair/1/redsync-rueidis linked-pair/1/redislock linked-pair/1/rueidislock
pair of linked-pair/5/redlatch <= 1.05 × linked-pair/5/redsync-goredis linked-pair/5/redsync-rueidis
pair of slow-pair/5/redlatch <= 1 × slow-pair/5/redsync-goredis slow-pair/5/redsync-rueidis
pair-p99 of slow-pair/5/redlatch <= 1 × slow-pair/5/redsync-goredis slow-pair/5/redsync-rueidis
wait-p99 of contended/16/1ms/1/redlatch <= 40ms
jain of contended/16/1ms/1/redlatch >= 0.95
per-over of contended/16/1ms/1/redlatch <= 3.5
hand-overs of contended/16/1ms/1/redlatch >= 1 × contended/16/1ms/1/redsync-goredis contended/16/1ms/1/redsync-rueidis contended/16/1ms/1/redislock contended/16/1ms/1/rueidislock
wait-p99 of contended/16/1ms/5/redlatch <= 46.5ms
jain of contended/16/1ms/5/redlatch >= 0.95
per-over of contended/16/1ms/5/redlatch <= 17.5
hand-overs of contended/16/1ms/5/redlatch >= 1 × contended/16/1ms/5/redsync-goredis contended/16/1ms/5/redsync-rueidis contended/16/1ms/3/etcd
per-over of contended/1000/1ms/1/redlatch <= 1.2 × contended/16/1ms/1/redlatch
per-over of contended/1000/0ms/1/redlatch <= 1.2 × contended/16/0ms/1/redlatch
per-over of contended/1000/1ms/5/redlatch <= 1.2 × contended/16/1ms/5/redlatch
per-over of contended/1000/0ms/5/redlatch <= 1.2 × contended/16/0ms/5/redlatch
commands of waiting/16/1/redlatch <= 1
commands of waiting/16/5/redlatch <= 5
`
