package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
	"github.com/redlatch/redlatch/test/bench/worker"
)

var must = check.Must

// TestMain lets the program of the tests be its own worker, as the bench is.
func TestMain(m *testing.M) {
	Child()
	worker.Module = ".."
	os.Exit(m.Run())
}

func cell(t *testing.T, key string, nodes int, s Situation) Cell {
	t.Helper()
	list, err := contender.Find(key)
	must(t, err)
	if s.ID == "" {
		s.ID = "test"
	}
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
	results := Run(t.Context(), cells, func(time.Duration, string) {})
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

var contended = Situation{Work: Processes, Count: 4, Held: time.Millisecond}

func TestProcessesContendWithoutOverlapping(t *testing.T) {
	t.Parallel()
	x := run(t, cell(t, "redlatch", 1, contended))[0]
	if x.Rate() == 0 || x.HandOverRate() == 0 || x.Commands < 2 || x.PerHandOver < x.Commands || x.Wait.Count < 4 || x.ClientCPU == 0 || x.ServerCPU == 0 {
		t.Fatalf("%+v", x)
	}
	if x.Hold.Median < time.Millisecond {
		t.Fatalf("held for %v; want at least 1 ms", x.Hold.Median)
	}
}

func TestAPairIsTwoCommandsOnEachServer(t *testing.T) {
	t.Parallel()
	var cells []Cell
	for _, key := range []string{"redlatch", "redsync-rueidis", "redlatch-rueidis"} {
		cells = append(cells, cell(t, key, 3, Situation{Rounds: 3, Warm: 50 * time.Millisecond}))
	}
	wrong := func(results []*Result) (all []string) {
		for _, x := range results {
			if x.Commands < 5.5 || x.Commands > 6.2 || x.Pair.Median == 0 || x.OnServer == 0 || x.Allocs == 0 || len(x.Rates) != 3 {
				all = append(all, fmt.Sprintf("%s: %+v", x.CellID(), x))
			}
		}
		return all
	}
	results := run(t, cells...)
	// On a busy machine a node may miss its time limit, and be asked again, or
	// be asked after what counts.
	for tries := 1; tries < 5 && len(wrong(results)) > 0; tries++ {
		results = run(t, cells...)
	}
	for _, w := range wrong(results) {
		t.Error(w)
	}
}

func TestEverySituationIsMeasured(t *testing.T) {
	t.Parallel()
	r := run(t, cell(t, "redlatch", 1, Situation{ID: "own", Count: 8}), cell(t, "redlatch", 1, Situation{ID: "one name", Count: 8, OneName: true, For: 500 * time.Millisecond}),
		cell(t, "redlatch", 5, Situation{ID: "freeze", Work: Freeze, Rounds: 2}), cell(t, "floor-plain", 5, Situation{ID: "pair"}), cell(t, "floor-scripts", 1, Situation{ID: "pair"}),
		cell(t, "redlatch-unwaited", 1, Situation{ID: "pair"}), cell(t, "redlatch", 1, Situation{Work: Extend, Count: 20, Rounds: 2}), cell(t, "redlatch", 1, Situation{Work: Once, Count: 1000}))
	freeze := func(x *Result) bool {
		f := x.Freeze
		return len(f.Healthy) == 2 && stats.Median(f.Mean) > 0 && stats.Median(f.First) > 0 && stats.Median(f.After) > 0
	}
	for i, ok := range []bool{r[0].Rate() > 0, r[1].Wait.Count > 0 && r[1].HandOverRate() > 0, freeze(r[2]),
		r[3].Pair.Count > 0 && r[3].Commands > 9, r[4].Pair.Count > 0 && r[4].Commands > 1.9, r[5].Pair.Count > 0 && r[5].Wait.Count == r[5].Pair.Count,
		stats.Median(r[6].Extensions) > 0 && len(r[6].Rates) == 2 && r[6].Commands >= 1, r[7].Kept.After > 0 && len(r[7].Rates) == 10 && r[7].Commands > 0} {
		if !ok {
			t.Errorf("%s: %+v", r[i].CellID(), r[i])
		}
	}
}

// They run alone: what the process occupies is measured.
func TestWaitersAreMeasured(t *testing.T) {
	s := Situation{Work: Wait, Count: 50, Settle: 500 * time.Millisecond, For: 2 * time.Second}
	together := cell(t, "redlatch", 1, s)
	s.Apart = true
	results := run(t, together, cell(t, "redlatch", 1, s))
	for _, x := range results {
		if k := x.Kept; k.Client == 0 || k.Goroutines < 50 || k.Drain == 0 || k.DrainCommands == 0 || x.Commands == 0 || x.Wait.Count != 50 {
			t.Fatalf("%+v", x)
		}
	}
	if one, each := results[0].Commands, results[1].Commands; each < 5*one {
		t.Errorf("a waiter sends %v a second beside 49 others of its client, and %v with a client of its own", one, each)
	}
}

func TestKeptLocksAreMeasured(t *testing.T) {
	x := run(t, cell(t, "redlatch", 1, Situation{Work: Keep, Count: 500, For: 3 * time.Second}))[0]
	k := x.Kept
	if k.Acquire == 0 || k.Extend == 0 || k.Release == 0 || k.Lock == 0 || k.Client == 0 || k.Reads == 0 || x.Commands == 0 || x.ClientCPU == 0 {
		t.Fatalf("%+v", x)
	}
}

func TestALockThatWasLostFailsItsCell(t *testing.T) {
	t.Parallel()
	c := cell(t, "redlatch", 1, Situation{Work: Keep, Count: 100})
	c.Contender = &contender.Contender{Key: "loses", Server: server.RedisKind, Live: 30 * time.Millisecond, Open: func(context.Context, []string) (*contender.Locker, error) {
		return &contender.Locker{
			Lock: func(_ context.Context, l contender.Lock) (contender.Release, error) {
				return func(context.Context) error {
					if l.Name == "orders/00000042" {
						return errors.New("lost")
					}
					return nil
				}, nil
			},
			Close: func() {},
		}, nil
	}}
	if x := Run(t.Context(), []Cell{c}, func(time.Duration, string) {})[0]; !strings.Contains(x.Failed, "lost") {
		t.Fatalf("%+v", x)
	}
}

func TestEtcdIsMeasuredToo(t *testing.T) {
	t.Parallel()
	x := run(t, cell(t, "etcd", server.EtcdMembers, Situation{For: 200 * time.Millisecond}))[0]
	if x.Pair.Count == 0 || x.Commands < 2 {
		t.Fatalf("%+v", x)
	}
}

func TestACellThatCannotBeMeasuredSaysSo(t *testing.T) {
	t.Parallel()
	missing := cell(t, "semaphore", 1, contended)
	missing.Contender = &contender.Contender{Key: "nobody", Title: "nobody", Server: server.RedisKind, Open: missing.Open}
	for _, c := range []Cell{cell(t, "etcd", 5, Situation{}), missing} {
		results := Run(t.Context(), []Cell{c}, func(time.Duration, string) {})
		if len(results) != 1 || results[0].Failed == "" {
			t.Errorf("%s: %+v", c.CellID(), results)
		}
	}
}

func TestLinksAreBetweenContendersAndServers(t *testing.T) {
	t.Parallel()
	linked, slow := server.Network{Delay: time.Millisecond}, server.Network{Delay: time.Millisecond, Last: 20 * time.Millisecond}
	for _, x := range run(t, cell(t, "redlatch", 5, Situation{ID: "linked", Network: linked, For: 100 * time.Millisecond}),
		cell(t, "redlatch", 5, Situation{ID: "slow", Network: slow, For: 100 * time.Millisecond})) {
		// A pair is two round trips.
		if p := x.Pair; p.Count == 0 || p.Median < 2*time.Millisecond {
			t.Errorf("%s: %+v", x.CellID(), p)
		}
	}
	s := contended
	s.Network, s.For = linked, time.Second
	if x := run(t, cell(t, "redlatch", 5, s))[0]; x.Rate() == 0 || x.HandOver.Median < time.Millisecond {
		t.Errorf("%+v", x)
	}
}

// The locks that several hold, on one server and on three.
var slots, readers = Situation{ID: "slots", Slots: 3}, Situation{ID: "readers", WriteEvery: 10}

// inJavaScript is the peer in JavaScript, where it is tested too: under the build
// tag javascript, which make bench BENCH=family sets when it has installed it.
var inJavaScript []string

// shared returns the cells of locks that several hold.
func shared(t *testing.T) (cells []Cell) {
	for _, n := range []int{1, 3} {
		for _, key := range append([]string{"redlatch", "redsync-names"}, inJavaScript...) {
			cells = append(cells, cell(t, key, n, slots))
		}
		cells = append(cells, cell(t, "redlatch", n, readers))
	}
	for i := range cells {
		c := &cells[i]
		c.Work, c.Turns, c.Count, c.Held = Processes, true, 16, time.Millisecond
		c.Rounds, c.Warm, c.Settle, c.For = 2, 100*time.Millisecond, 20*time.Millisecond, 300*time.Millisecond
	}
	return cells
}

func TestLocksThatSeveralHoldAreMeasured(t *testing.T) {
	for _, c := range shared(t) { // one after the other: each fills the machine
		t.Run(c.CellID(), func(t *testing.T) {
			x := run(t, c)[0]
			if x.Rate() == 0 || x.Commands < 1.5 || x.Wait.Count == 0 || x.Hold.Median < 900*time.Microsecond || len(x.Rates) != 2 {
				t.Fatalf("%+v", x)
			}
			if c.WriteEvery > 0 && x.WriterWait.Count == 0 {
				t.Fatalf("no writers: %+v", x)
			}
			if c.Group == contender.Ours && x.Seen.Broken > 0 {
				t.Fatalf("%+v", x.Seen)
			}
		})
	}
}

// What a cell's processes send is what MONITOR shows of them.
func TestCommandsAreThoseThatMonitorShowsFromProcesses(t *testing.T) {
	for _, c := range shared(t) { // one after the other: each fills the machine
		t.Run(c.CellID(), func(t *testing.T) {
			b, err := start(t.Context(), c, false)
			must(t, err)
			defer b.Stop()
			e := &entrant{Result: &Result{Cell: c}, backend: b}
			team, err := worker.Start(t.Context(), c.Contender, e.configs())
			must(t, err)
			defer team.Stop()
			var monitors []*bufio.Scanner
			for _, address := range b.Addresses() {
				m, err := net.Dial("tcp", address)
				must(t, err)
				defer m.Close()
				m.SetDeadline(time.Now().Add(time.Minute))
				lines := bufio.NewScanner(m)
				lines.Buffer(nil, 1<<20) // a line has a whole script
				if fmt.Fprint(m, "MONITOR\r\n"); !lines.Scan() {
					t.Fatal(lines.Err())
				}
				monitors = append(monitors, lines)
			}
			before, err := b.Sample()
			must(t, err)
			o := worker.Order{Name: "seen", Start: clock.Now(), End: clock.Now() + int64(300*time.Millisecond)}
			must(t, team.Begin(o))
			if _, _, err := team.Finish(o); err != nil {
				t.Fatal(err)
			}
			after, err := b.Sample()
			must(t, err)
			counted, shown := c.Sent(after.Sub(before).Commands), []string(nil)
			for _, m := range monitors {
				shown = append(shown, shownBetween(t, m)...)
			}
			if counted != int64(len(shown)) || counted < 20 {
				names := map[string]int{}
				for _, text := range shown {
					name, _, _ := strings.Cut(text, " ")
					names[strings.ToLower(name)]++
				}
				t.Fatalf("counted %d of %v; MONITOR showed %d: %v", counted, after.Sub(before).Commands, len(shown), names)
			}
		})
	}
}

// shownBetween returns what clients sent between two readings of the
// statistics.
func shownBetween(t *testing.T, m *bufio.Scanner) []string {
	t.Helper()
	var sent []string
	for samples := 0; ; {
		if !m.Scan() {
			t.Fatal(m.Err())
		}
		_, text, _ := strings.Cut(m.Text(), " [0 ")
		client, command, _ := strings.Cut(text, "] ")
		switch {
		case client == "lua":
		case strings.EqualFold(command, `"info" "all"`):
			if samples++; samples == 2 {
				return sent
			}
		case samples == 1:
			sent = append(sent, command)
		}
	}
}

// entrantOf is an entrant that had rounds.
func entrantOf(key string, s Situation, t *testing.T, rounds ...round) *entrant {
	return &entrant{Result: &Result{Cell: cell(t, key, 1, s)}, rounds: rounds}
}

func TestTheSummaryIsOfAllRounds(t *testing.T) {
	// A hundred waits of 1 to 100 ns in each round, by two contenders in turns,
	// and a writer that waited in vain.
	h := stats.History{Contenders: 2}
	for i := int64(1); i <= 100; i++ {
		h.Requests = append(h.Requests, stats.Request{Contender: int32(i % 2), Got: true, Called: i * 1000, Acquired: i*1000 + i, Released: i*1000 + 500, Freed: i*1000 + 507})
	}
	h.Requests = append(h.Requests, stats.Request{Contender: 0, Called: 0, Acquired: 777, Write: true})
	one := round{history: h, done: 100, length: time.Second, clientCPU: time.Second, allocs: 700}
	one.server.CPU, one.server.Commands, one.server.Micros = 2*time.Second, map[string]int64{"evalsha": 300, "get": 99}, map[string]int64{"evalsha": 500}
	slow, slower := one, one
	slow.length, slower.length = 2*time.Second, 4*time.Second
	e := entrantOf("redlatch", Situation{Work: Processes, Count: 2, WriteEvery: 10}, t, one, slower, slow)
	must(t, e.sum())
	if e.Rate() != 50 || len(e.Rates) != 3 || e.HandOverRate() != 49.5 {
		t.Errorf("rate %v of %v, hand-overs %v; want the median of the rounds", e.Rate(), e.Rates, e.HandOverRate())
	}
	if e.Wait != (stats.Summary{Count: 300, Median: 50, P99: 99, Max: 100}) || e.Pair.Max != 107 || e.Hold.Median != 449 {
		t.Errorf("waits %+v, pairs %+v, held %+v", e.Wait, e.Pair, e.Hold)
	}
	if e.WriterWait.Count != 3 || e.WriterWait.P99 != 777 {
		t.Errorf("writers' waits %+v", e.WriterWait)
	}
	if e.Commands != 3 || e.PerHandOver != 300.0/99 || e.ClientCPU != 10*time.Millisecond || e.ServerCPU != 20*time.Millisecond || e.OnServer != 5*time.Microsecond || e.Allocs != 7 {
		t.Errorf("costs %+v", e.Result)
	}
	if e.Jain != 1 || e.Seen.Readers != 1 || e.Never != 0 {
		t.Errorf("%+v", e.Result)
	}
	empty := entrantOf("redlatch", Situation{Work: Processes, Count: 2}, t, round{history: stats.History{Contenders: 2}, length: time.Second})
	if err := empty.sum(); err != nil || empty.Rate() != 0 || empty.Commands != 0 || empty.Never != 2 {
		t.Errorf("of nothing: %v, %+v", err, empty.Result)
	}
}

func TestTooManyHoldersAreAnErrorOfOursAndShownOfPeers(t *testing.T) {
	overlap := stats.History{Contenders: 2, Slots: 1, Requests: []stats.Request{
		{Contender: 0, Got: true, Acquired: 1, Released: 10}, {Contender: 1, Got: true, Acquired: 5, Released: 20}}}
	both := round{history: overlap, done: 2, length: time.Second}
	if err := entrantOf("redlatch", Situation{Work: Processes, Count: 2, Slots: 1}, t, both).sum(); err == nil {
		t.Error("two holders of redlatch's one slot are no error")
	}
	peer := entrantOf("redsync-names", Situation{Work: Processes, Count: 2, Slots: 1}, t, both)
	if err := peer.sum(); err != nil || peer.Seen.Readers != 2 || peer.Seen.Broken != 1 {
		t.Errorf("%v, %+v", err, peer.Seen)
	}
	for i := range overlap.Requests {
		overlap.Requests[i].Write = true
	}
	if err := entrantOf("redsync-rueidis", contended, t, both).sum(); err == nil {
		t.Error("two holders of a peer's exclusive lock are no error")
	}
	if err := entrantOf("redlatch", Situation{Count: 2}, t, both).sum(); err != nil {
		t.Errorf("locks on names of their own do not exclude each other: %v", err)
	}
}
