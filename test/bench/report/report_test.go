package report

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

var page = Page{
	Key: "test", Title: "Test", Bounds: []Bound{
		{Row: "pair", Of: "pair of pair/1/redlatch", Must: "<= 1.05 × pair/1/redsync-goredis pair/1/redsync-rueidis", Aim: "<= 1 × pair/1/redsync-goredis pair/1/redsync-rueidis"},
		{Row: "rate", Of: "rate of pair/1/redlatch", Must: ">= 0.5 × pair/1/redsync-goredis pair/1/redsync-rueidis"},
		{Row: "fairness", Of: "jain of pair/1/redlatch", Must: ">= 0.95", Aim: ">= 1"},
		{Row: "five servers", Of: "pair of pair/5/redlatch", Must: "<= 2 × pair/5/redsync-rueidis"},
	},
	Picture: "test.svg", Charts: []Chart{{Title: "Pairs < all", Figure: "pair", Cells: "pair/1"}, {Title: "None", Figure: "pair", Cells: "other/1"}},
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

// outcomes is whether each bound is met, and whether its aim is reached.
func outcomes(results []*measure.Result) string {
	var list []string
	for _, b := range page.Bounds {
		v := b.Judge(results)
		list = append(list, v.Met.String()+"/"+v.Reached.String())
	}
	return strings.Join(list, " ")
}

func TestBoundsAreMetMissedOrNotMeasured(t *testing.T) {
	for _, c := range []struct {
		mine time.Duration
		jain float64
		want string
	}{
		{100 * time.Microsecond, 1, "yes/yes **NO**/– yes/yes –/–"}, // 100 a second, and the best has 300
		{105 * time.Microsecond, 0.95, "yes/**NO** **NO**/– yes/**NO** –/–"},
		{106 * time.Microsecond, 0.94, "**NO**/**NO** **NO**/– **NO**/**NO** –/–"},
	} {
		if got := outcomes(sample(c.mine, c.jain)); got != c.want {
			t.Errorf("with %v and %v:\ngot  %s\nwant %s", c.mine, c.jain, got, c.want)
		}
	}
	failed := sample(time.Microsecond, 1)
	failed[0].Failed = "broken"
	if got := outcomes(failed); strings.ContainsAny(got, "ysNO") {
		t.Errorf("of a cell that failed: %s", got)
	}
	results := sample(105*time.Microsecond, 1)
	const row = "| pair | 105 µs, 1.05 × | ≤ 1.05 × 100 µs of redsync, rueidis | yes | ≤ 1 × 100 µs of redsync, rueidis | **NO** | `pair/1/redlatch` |"
	if text := page.BoundTable(results); !strings.Contains(text, row) {
		t.Errorf("not beside the best of the peers:\n%s", text)
	}
}

// Peers that starve some contenders hand over faster: they are no measure.
func TestUnfairPeersAreNotCompared(t *testing.T) {
	b := Bound{Of: "rate of pair/1/redlatch", Must: ">= 1 × fair pair/1/redsync-goredis pair/1/redsync-rueidis"}
	fairest := Bound{Of: "pair of pair/1/redlatch", Must: "<= 1 × fairest pair/1/redsync-goredis pair/1/redsync-rueidis"}
	results := sample(102*time.Microsecond, 0.96) // redlatch has 100 a second, the peers 300 and 10
	if v := b.Judge(results); v.Met != Missed {
		t.Errorf("both peers are fair: %+v", v)
	}
	results[1].Jain = 0.94
	if v := b.Judge(results); v.Met != Met || !strings.Contains(v.Must, "redsync, rueidis") {
		t.Errorf("the faster peer is not fair: %+v", v)
	}
	if v := fairest.Judge(results); v.Met != Missed || !strings.Contains(v.Must, "redsync, rueidis") {
		t.Errorf("the fairest takes 100 µs: %+v", v)
	}
	results[2].Jain = 0.5
	if v := b.Judge(results); v.Met != Met || !strings.Contains(v.Must, "none is") {
		t.Errorf("no peer is fair: %+v", v)
	}
	if v := fairest.Judge(results); v.Met != Met || !strings.Contains(v.Must, "redsync, go-redis") {
		t.Errorf("the fairest takes 105 µs: %+v", v)
	}
	if v := b.Judge(results[:1]); v.Met != Unknown {
		t.Errorf("no peer was measured: %+v", v)
	}
}

func TestChartsAreBarsOfWhatWasMeasured(t *testing.T) {
	results := sample(50*time.Microsecond, 1)
	results[2].Failed = "broken"
	text := page.SVG(results)
	if err := xml.Unmarshal([]byte(text), new(struct{})); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	for _, want := range []string{">Pairs &lt; all<", ">redlatch<", `width="190" height="14" fill="#0b6e99"`, `width="400" height="14" fill="#9aa5b1"`, ">105 µs<"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "rueidis") || strings.Contains(text, "None") {
		t.Errorf("what was not measured is in\n%s", text)
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
