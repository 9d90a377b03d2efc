package report

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

var page = Page{
	Key: "test", Title: "Test", Goals: `
pair of pair/1/redlatch <= 1.05 × pair/1/redsync-goredis pair/1/redsync-rueidis
rate of pair/1/redlatch >= 0.5 × pair/1/redsync-goredis pair/1/redsync-rueidis
jain of pair/1/redlatch >= 0.95
pair-p99 of pair/1/redlatch <= 0.21ms
pair of pair/5/redlatch <= 2 × pair/5/redsync-rueidis
`,
	Tables: []Table{{
		Heading: "## Pair", Contenders: "redlatch redsync-goredis redsync-rueidis", Base: "redlatch", Nodes: []int{1},
		Situations: []measure.Situation{{ID: "pair"}},
		Columns:    "pair ×rate",
	}},
}

// sample is a run in which redlatch takes some time for a pair, and redsync 105
// and 100 µs.
func sample(mine time.Duration, jain float64) []*measure.Result {
	var list []*measure.Result
	for i, c := range page.Cells() {
		d := []time.Duration{mine, 105 * time.Microsecond, 100 * time.Microsecond}[i]
		list = append(list, &measure.Result{Cell: c, Jain: jain, Pair: stats.Summary{Count: 1, Median: d, P99: 2 * d, Max: 3 * d},
			Rates: [][]float64{{1000, 100, 10}, {500, 300, 20}, {100, 10, 1}}[i]})
	}
	return list
}

// reached is the last column of each goal.
func reached(results []*measure.Result) (list []string) {
	for line := range strings.Lines(page.GoalTable(results)) {
		columns := strings.Split(line, " | ")
		list = append(list, strings.TrimSuffix(columns[len(columns)-1], " |\n"))
	}
	return list[2:]
}

func TestGoalsAreReachedMissedOrNotMeasured(t *testing.T) {
	for _, c := range []struct {
		mine time.Duration
		jain float64
		want string
	}{
		{105 * time.Microsecond, 0.95, "yes **NO** yes yes –"}, // 100 a second, and the best has 300
		{106 * time.Microsecond, 0.94, "**NO** **NO** **NO** **NO** –"},
	} {
		if got := strings.Join(reached(sample(c.mine, c.jain)), " "); got != c.want {
			t.Errorf("with %v and %v: got %s; want %s", c.mine, c.jain, got, c.want)
		}
	}
	failed := sample(time.Microsecond, 1)
	failed[0].Failed = "broken"
	if got := strings.Join(reached(failed), " "); got != "– – – – –" {
		t.Errorf("of a cell that failed: %s", got)
	}
	if text := page.GoalTable(sample(105*time.Microsecond, 1)); !strings.Contains(text, "| 105 µs, 1.05 × | <= 105 µs, 1.05 × 100 µs of `pair/1/redsync-rueidis` | yes |") {
		t.Errorf("not beside the best of the peers:\n%s", text)
	}
}

func TestRowsAreShownBesideTheBaseInTheSameRound(t *testing.T) {
	text := page.Markdown(nil, time.Minute, sample(time.Microsecond, 1))
	if !strings.Contains(text, "| redsync, go-redis | 1 | 105 µs | 2.00 | `pair/1/redsync-goredis` |") {
		t.Fatal(text)
	}
}

func TestFailedCellsAreShownLoudly(t *testing.T) {
	results := sample(time.Microsecond, 1)
	results[2].Failed = "not installed" // the last row
	results[0].Failed, results[1].Errors, results[1].Error = "EXCLUSION BROKEN\n1 times", 3, "why"
	text := page.Markdown(nil, time.Minute, results)
	for _, want := range []string{
		"|  | servers | median | × | cell |", "## What failed", "- **`pair/1/redlatch`: EXCLUSION BROKEN 1 times**", "| redlatch | 1 | **FAILED** | – |",
		"redsync, go-redis (3 calls failed)", "- `pair/1/redsync-goredis`: 3 calls; the contender asked again, and its wait went on. The first: why",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}
