package report

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/stats"
)

// sample is a report in which redlatch reaches its pair goals on 1 server, and
// breaks exclusion elsewhere.
func sample(mine time.Duration) *Report {
	pair := func(kind cell.Kind, nodes int, sys string, d time.Duration) measure.Result {
		s := stats.Summary{Count: 1, Median: d, P99: 2 * d, Max: 3 * d}
		return measure.Result{Cell: cell.Cell{Kind: kind, Nodes: nodes, System: mustFind(sys)}, Pair: measure.Pair{Times: s, Acquire: s}}
	}
	contended := func(count int, commands float64) measure.Result {
		c := cell.Cell{Kind: cell.Contended, Count: count, Held: time.Millisecond, Nodes: 5, System: ours}
		return measure.Result{Cell: c, Contended: measure.Contended{
			HandOvers: 1, HandOversRate: 100, Jain: 0.9, PerHandOver: commands,
			Wait: stats.Summary{P99: time.Millisecond}, HandOver: stats.Summary{Median: time.Millisecond},
		}}
	}
	broken := contended(128, 1)
	broken.Failed = "EXCLUSION BROKEN 1 times"
	return &Report{Settings: cell.Full(), Results: []measure.Result{
		pair(cell.Pair, 1, "redlatch", mine), pair(cell.Pair, 1, "redsync-goredis", 105*time.Microsecond), pair(cell.Pair, 1, "redsync-rueidis", 100*time.Microsecond),
		pair(cell.Scripts, 1, "floor-guarded", mine), pair(cell.Scripts, 1, "floor-plain", 75*time.Microsecond),
		pair(cell.LinkedPair, 1, "redlatch", mine), pair(cell.LinkedPair, 1, "redislock", 101*time.Microsecond), pair(cell.LinkedPair, 1, "redsync-rueidis", 100*time.Microsecond),
		pair(cell.SlowPair, 5, "redlatch", mine), pair(cell.SlowPair, 5, "redsync-rueidis", 105*time.Microsecond),
		contended(16, 15), contended(1000, 30), broken,
	}}
}

func goal(t *testing.T, r *Report, contains string) Goal {
	t.Helper()
	for _, g := range r.Goals() {
		if strings.Contains(g.Goal, contains) {
			return g
		}
	}
	t.Fatalf("no goal %q", contains)
	return Goal{}
}

func TestGoalsAreReachedMissedOrNotMeasured(t *testing.T) {
	for _, c := range []struct {
		ours    time.Duration
		reached string
	}{{105 * time.Microsecond, "yes"}, {106 * time.Microsecond, "**NO**"}} {
		r := sample(c.ours)
		for _, name := range []string{
			"pair, 1 server: redlatch beside redsync over rueidis", "pair, 1 server: redlatch below redsync over go-redis", "the scripts alone, guard on, 1 server",
			"over links of 1 ms, 1 server", "four of 1 ms: median below redsync, rueidis", "four of 1 ms: p99 below redsync, rueidis",
		} {
			if g := goal(t, r, name); g.Reached != c.reached {
				t.Errorf("with %v: %+v", c.ours, g)
			}
		}
	}
	r := sample(time.Millisecond)
	if g := goal(t, r, "pair, 5 servers: redlatch beside redsync over rueidis"); g.Reached != "–" {
		t.Errorf("not measured, and yet judged: %+v", g)
	}
	for _, name := range []string{"5 servers: Jain's index", "at 1000 waiters beside 16, 1 ms held, 5 servers"} {
		if g := goal(t, r, name); g.Reached != "**NO**" {
			t.Errorf("missed, and not reported: %+v", g)
		}
	}
	if !strings.Contains(r.GoalTable(), "**NO**") {
		t.Error("a missed goal does not stand out")
	}
}

func TestFailedCellsAreShownLoudly(t *testing.T) {
	text := sample(time.Millisecond).Markdown()
	for _, want := range []string{"## Failed cells", "**`contended/128/1ms/5/redlatch`: EXCLUSION BROKEN 1 times**", "| **FAILED** |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}
