package measure

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
)

var must = check.Must

// TestMain lets the program of the tests be its own worker, as the bench is.
func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

func cell(t *testing.T, key string, nodes int, s Situation) Cell {
	t.Helper()
	list, err := contender.Find(key)
	must(t, err)
	s.ID = cmp.Or(s.ID, "test")
	if s.For == 0 {
		s.For = 300 * time.Millisecond // a busy machine does something in it
		if s.Work == Processes {
			s.For = 500 * time.Millisecond
		}
	}
	return Cell{Situation: s, Nodes: nodes, Contender: list[0]}
}

// run measures cells, and fails the test if one of them cannot be.
func run(t *testing.T, cells ...Cell) []*Result {
	t.Helper()
	results := Run(t.Context(), cells, func(string) {})
	if len(results) != len(cells) {
		t.Fatalf("%d results for %d cells", len(results), len(cells))
	}
	for _, r := range results {
		if r.Failed != "" {
			t.Fatalf("%s: %s", r.CellID(), r.Failed)
		}
	}
	return results
}

var contended = Situation{Work: Processes, Count: 4, Held: 20 * time.Millisecond}

func TestProcessesContendWithoutOverlapping(t *testing.T) {
	t.Parallel()
	turns := contended
	turns.ID, turns.Turns, turns.Rounds = "turns", true, 2
	crowd := turns
	crowd.ID, crowd.Crowd, crowd.Count, crowd.Deadline = "crowd", true, 16, 2*time.Second
	for _, x := range run(t, cell(t, "redlatch", 1, contended), cell(t, "redlatch", 3, turns), cell(t, "redsync-rueidis", 3, turns),
		cell(t, "redlatch", 3, crowd)) {
		if x.ID == "turns" && (x.Base == nil || x.Base.Key != "redsync-rueidis") {
			t.Errorf("%s: %+v", x.CellID(), x)
		}
		if len(x.Rates) != max(x.Rounds, 1) || x.Wait.Count < 4 || x.ClientCPU == 0 || x.ServerCPU == 0 {
			t.Errorf("%s: %+v", x.CellID(), x)
		}
		if x.Key != "redlatch" { // on a busy machine it may have no lock in so short a time
			continue
		}
		if x.Rate() == 0 || x.HandOverRate() == 0 || x.Commands < 2 || x.PerHandOver < x.Commands {
			t.Errorf("%s: %+v", x.CellID(), x)
		}
		if x.Rate() > 50 {
			t.Errorf("%s: %v a second; want that each is held for 20 ms", x.CellID(), x.Rate())
		}
	}
}

func TestRunsAreCountedByTheirExit(t *testing.T) {
	t.Parallel()
	s := Situation{Work: Runs, Count: 3}
	if x := run(t, cell(t, "redlatch", 1, s))[0]; x.NoQuorum+x.Other != 0 || x.Took == 0 {
		t.Errorf("on a server: %+v", x)
	}
	gone, err := server.StartRedis(t.Context(), 1)
	must(t, err)
	gone.Stop()
	e := entrantOf("redlatch", s, t)
	e.backend = gone
	if must(t, e.runs(t.Context())); e.NoQuorum != 3 || e.Other != 0 {
		t.Errorf("without a server: %+v", e.Result)
	}
}

func TestGoroutinesAreMeasured(t *testing.T) {
	t.Parallel()
	for length := 300 * time.Millisecond; ; length *= 4 {
		r := run(t, cell(t, "redlatch", 1, Situation{ID: "own", Count: 8, Single: true, For: length}),
			cell(t, "redlatch", 1, Situation{ID: "one name", Count: 8, OneName: true, For: 2 * length}))
		if r[0].Rate() > 0 && r[0].Pair.Count > 0 && stats.Median(r[0].Alone) > 0 && r[1].Wait.Count > 0 && r[1].HandOverRate() > 0 {
			return
		}
		if length > 10*time.Second { // a server that is stopped for a while does nothing in less
			t.Fatalf("%+v, %+v", r[0], r[1])
		}
	}
}

// It runs alone: what the process occupies is measured.
func TestKeptLocksAreMeasured(t *testing.T) {
	x := run(t, cell(t, "redlatch", 1, Situation{Work: Keep, Count: 500, For: 3 * time.Second}))[0]
	k := x.Kept
	if k.Acquire == 0 || k.Extend == 0 || k.Release == 0 || k.Lock == 0 || k.Client == 0 || x.Commands == 0 || x.ClientCPU == 0 {
		t.Fatalf("%+v", x)
	}
}

// TestWritesOfAClusterAreCounted has pairs, which are two writes each. Sessions and
// timers are few beside them.
func TestWritesOfAClusterAreCounted(t *testing.T) {
	t.Parallel()
	s := Situation{Rounds: 2, For: time.Second}
	for _, x := range run(t, cell(t, "redlatch-etcd", server.Members, s), cell(t, "etcd", server.Members, s),
		cell(t, "redlatch-zookeeper", server.Members, s), cell(t, "zk-lock", server.Members, s)) {
		if x.Pair.Count == 0 || x.Commands < 2 || x.Writes < 1.9 {
			t.Errorf("%+v", x)
		}
	}
}

func TestACellThatCannotBeMeasuredSaysSo(t *testing.T) {
	t.Parallel()
	missing, lost := cell(t, "redlatch", 1, contended), cell(t, "redlatch", 1, Situation{Work: Keep, Count: 100})
	missing.Contender = &contender.Contender{Key: "nobody", Title: "nobody", Server: server.RedisKind, Open: missing.Open}
	lost.Contender = &contender.Contender{Key: "loses", Server: server.RedisKind, Live: 30 * time.Millisecond, Open: loses}
	for want, c := range map[string]Cell{"3 members": cell(t, "etcd", 5, Situation{}), `no contender "nobody"`: missing, "releasing the locks: lost": lost} {
		if x := Run(t.Context(), []Cell{c}, func(string) {})[0]; !strings.Contains(x.Failed, want) {
			t.Errorf("%s: %q, want %q", c.CellID(), x.Failed, want)
		}
	}
}

// loses opens a contender that loses one of its locks.
func loses(context.Context, []string) (*contender.Locker, error) {
	return &contender.Locker{Close: func() {}, Lock: func(_ context.Context, name string) (contender.Release, error) {
		return func(context.Context) error {
			if name == "orders/00000042" {
				return errors.New("lost")
			}
			return nil
		}, nil
	}}, nil
}

func TestLinksAreBetweenContendersAndServers(t *testing.T) {
	t.Parallel()
	linked := server.Network{Delay: time.Millisecond, Last: 20 * time.Millisecond}
	// A pair is two round trips, of which one node of one and most of three decide.
	for nodes, trip := range map[int]time.Duration{1: linked.Last, 3: linked.Delay} {
		x := run(t, cell(t, "redlatch", nodes, Situation{Network: linked, For: time.Second}))[0]
		if p := x.Pair; p.Count == 0 || p.Median < 2*trip {
			t.Errorf("%s over links of %v: %+v", x.CellID(), trip, p)
		}
	}
}

func entrantOf(key string, s Situation, t *testing.T, rounds ...round) *entrant {
	return &entrant{Result: &Result{Cell: cell(t, key, 1, s)}, rounds: rounds}
}

func TestTheSummaryIsOfAllRounds(t *testing.T) {
	// A hundred waits of 1 to 100 ns in each round, by two contenders in turns,
	// and one in vain.
	h := stats.History{Contenders: 2}
	for i := int64(1); i <= 100; i++ {
		h.Requests = append(h.Requests, stats.Request{Contender: int32(i % 2), Got: true, Called: i * 1000, Acquired: i*1000 + i, Released: i*1000 + 500, Freed: i*1000 + 507})
	}
	h.Requests = append(h.Requests, stats.Request{Contender: 0, Called: 0, Acquired: 777})
	one := round{history: h, done: 100, length: time.Second, clientCPU: time.Second}
	one.server.CPU, one.server.Commands = 2*time.Second, map[string]int64{"evalsha": 300, "get": 99}
	slow, slower := one, one
	slow.length, slower.length = 2*time.Second, 4*time.Second
	e := entrantOf("redlatch", Situation{Work: Processes, Count: 2}, t, one, slower, slow)
	must(t, e.sum())
	if e.Rate() != 50 || len(e.Rates) != 3 || e.HandOverRate() != 49.5 {
		t.Errorf("rate %v of %v, hand-overs %v; want the median of the rounds", e.Rate(), e.Rates, e.HandOverRate())
	}
	if e.Wait != (stats.Summary{Count: 303, Median: 51, P99: 100, Max: 777}) || e.Pair.Max != 107 {
		t.Errorf("waits %+v, pairs %+v", e.Wait, e.Pair)
	}
	if e.Commands != 3 || e.PerHandOver != 300.0/99 || e.ClientCPU != 10*time.Millisecond || e.ServerCPU != 20*time.Millisecond {
		t.Errorf("costs %+v", e.Result)
	}
	if e.Jain != 1 || e.Never != 0 {
		t.Errorf("%+v", e.Result)
	}
	empty := entrantOf("redlatch", Situation{Work: Processes, Count: 2}, t, round{history: stats.History{Contenders: 2}, length: time.Second})
	if err := empty.sum(); err != nil || empty.Rate() != 0 || empty.Commands != 0 || empty.Never != 2 {
		t.Errorf("of nothing: %v, %+v", err, empty.Result)
	}
}

func TestTwoHoldersAreAnError(t *testing.T) {
	both := round{done: 2, length: time.Second, history: stats.History{Contenders: 2, Requests: []stats.Request{
		{Contender: 0, Got: true, Acquired: 1, Released: 10}, {Contender: 1, Got: true, Acquired: 5, Released: 20}}}}
	for _, key := range []string{"redlatch", "redsync-rueidis"} {
		if err := entrantOf(key, contended, t, both).sum(); err == nil || !strings.Contains(err.Error(), "BROKEN 1 times") {
			t.Errorf("two holders of a lock of %s: %v", key, err)
		}
	}
	if err := entrantOf("redlatch", Situation{Count: 2}, t, both).sum(); err != nil {
		t.Errorf("locks on names of their own do not exclude each other: %v", err)
	}
}
