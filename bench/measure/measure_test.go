package measure

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/worker"
)

// TestMain lets the program of the tests be its own worker, as the bench is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == worker.Argument {
		if err := worker.Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Begin(string, time.Duration) {}
func (silent) End()                        {}

// run measures cells in as little time as it takes.
func run(t *testing.T, ids ...string) []Result {
	t.Helper()
	s := cell.Quick()
	s.PairTime, s.OwnTime, s.OwnRounds = 20*time.Millisecond, 20*time.Millisecond, 2
	s.ContendTime, s.CrowdTime, s.WaitTime, s.LeaseTime = time.Second, time.Second, 200*time.Millisecond, 200*time.Millisecond
	var cells []cell.Cell
	for _, id := range ids {
		c, err := cell.Parse(id)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, c)
	}
	results, err := (&Runner{Settings: s, Progress: silent{}}).Run(t.Context(), cells)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(ids) {
		t.Fatalf("%d results for %d cells", len(results), len(ids))
	}
	for _, r := range results {
		if r.Failed != "" {
			t.Fatalf("%s: %s", r.ID, r.Failed)
		}
	}
	return results
}

func TestProcessesContendWithoutOverlapping(t *testing.T) {
	t.Parallel()
	c := run(t, "contended/4/1ms/1/redlatch")[0].Contended
	if c.Acquisitions == 0 || c.Overlaps != 0 || c.Commands < 2 || c.Wait.Count < 4 || c.ClientCPU == 0 || c.RoundTrip == nil {
		t.Fatalf("%+v", c)
	}
	if c.Held.Median < time.Millisecond {
		t.Fatalf("held for %v; want at least 1 ms", c.Held.Median)
	}
}

func TestManyContendersShareProcesses(t *testing.T) {
	t.Parallel()
	r := run(t, "contended/140/0ms/1/redsync-rueidis")[0].Contended
	if r.Acquisitions == 0 || r.Wait.Count < 140 {
		t.Fatalf("%d waits of 140 contenders, %d acquisitions", r.Wait.Count, r.Acquisitions)
	}
}

func TestAPairIsTwoCommandsOnEachServer(t *testing.T) {
	t.Parallel()
	results := run(t, "pair/3/redlatch", "pair/3/redsync-rueidis", "pair/3/floor-scripts")
	for _, r := range results {
		// A majority is waited for, so the last few may still be on their way.
		if r.Pair.Commands < 5.5 || r.Pair.Commands > 6.2 || r.Pair.Times.Median == 0 {
			t.Errorf("%s: %+v", r.ID, r.Pair)
		}
	}
	if results[2].Pair.Acquire == nil {
		t.Error("the floor's acquire was not measured")
	}
}

func TestEverySituationIsMeasured(t *testing.T) {
	t.Parallel()
	r := run(t, "own/8/1/redlatch", "waiting/2/1/redlatch", "frozen-pair/5/redlatch", "frozen-contended/3/1ms/5/redlatch", "leases/50/1/redlatch")
	if r[0].Own.PerSecond == 0 || r[1].Waiting.Seconds == 0 || r[2].Pair.Times.Count == 0 || r[3].Contended.Acquisitions == 0 || r[4].Leases.Heap == 0 {
		t.Fatalf("%+v", r)
	}
}

func TestEtcdIsMeasuredToo(t *testing.T) {
	t.Parallel()
	if p := run(t, "pair/3/etcd")[0].Pair; p.Times.Count == 0 || p.Commands < 2 {
		t.Fatalf("%+v", p)
	}
}

func TestACellThatCannotBeMeasuredSaysSo(t *testing.T) {
	t.Parallel()
	c := cell.Cell{Kind: cell.Pair, Nodes: 5, System: "etcd"}
	results, err := (&Runner{Settings: cell.Quick(), Progress: silent{}}).Run(t.Context(), []cell.Cell{c})
	if err != nil || len(results) != 1 || results[0].Failed == "" {
		t.Fatalf("%+v, %v", results, err)
	}
}
