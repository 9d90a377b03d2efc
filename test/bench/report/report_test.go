package report

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

var page = Page{
	Key: "test", Title: "Test", Text: "Reasons.\n",
	Tables: []Table{{
		Heading: "## Pair", Contenders: "redlatch redsync-goredis redsync-rueidis", Nodes: []int{1},
		Situations: []measure.Situation{{ID: "pair"}},
		Columns:    "pair rate",
	}},
}

// sample is a run in which redlatch takes some time for a pair, and redsync 105
// and 100 µs.
func sample(mine time.Duration) []*measure.Result {
	var list []*measure.Result
	for i, c := range page.Cells() {
		d := []time.Duration{mine, 105 * time.Microsecond, 100 * time.Microsecond}[i]
		list = append(list, &measure.Result{Cell: c, Pair: stats.Summary{Count: 1, Median: d, P99: 2 * d, Max: 3 * d},
			Rates: [][]float64{{1000, 100, 10}, {500, 300, 20}, {100, 10, 1}}[i]})
	}
	return list
}

func TestRowsAreShownBesideEachOther(t *testing.T) {
	text := page.Markdown(nil, time.Minute, sample(time.Microsecond))
	for _, want := range []string{"\nReasons.\n", "| redsync, go-redis | 1 | 105 µs | 300 | `pair/1/redsync-goredis` |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestFailedCellsAreShownLoudly(t *testing.T) {
	results := sample(time.Microsecond)
	results[2].Failed = "not installed" // the last row
	results[0].Failed, results[1].Errors = "EXCLUSION BROKEN", 3
	text := page.Markdown(nil, time.Minute, results)
	for _, want := range []string{
		"|  | servers | median | a second | cell |", "| redlatch | 1 | **FAILED** | – |", "redsync, go-redis (3 calls failed)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}
