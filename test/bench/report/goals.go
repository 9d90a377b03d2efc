package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// check checks a goal, which is a line like
//
//	rate of own/64/1/redlatch >= 0.7 × own/64/1/redsync-rueidis
//
// The bound is a number, a time, or a multiple of the best of some cells. It returns a
// row of a table, whose last column is yes, **NO**, or – where the run did not
// measure what it takes to know.
func check(goal string, results []*measure.Result) string {
	words := strings.Fields(goal)
	f, least := figures[words[0]], words[3] == ">="
	of := func(id string) float64 {
		for _, x := range results {
			if x.CellID() == id && x.Failed == "" {
				return stats.Median(f.of(x))
			}
		}
		return 0
	}
	var factor, best float64
	if d, err := time.ParseDuration(words[4]); err == nil {
		factor = float64(d)
	} else {
		fmt.Sscan(words[4], &factor)
	}
	mine, bound, by := of(words[2]), factor, ""
	measured, limit, reached := "not measured in this run", words[3]+" "+words[4], "–"
	if len(words) > 5 {
		for _, id := range words[6:] {
			if n := of(id); n > 0 && (best == 0 || (n > best) == least) {
				best, by = n, id
			}
		}
		bound, limit = factor*best, limit+" ×"
	}
	if mine > 0 && bound > 0 {
		measured, limit, reached = f.format(mine), words[3]+" "+f.format(bound), "**NO**"
		if best > 0 {
			measured += fmt.Sprintf(", %.2f ×", mine/best)
			limit += fmt.Sprintf(", %.2f × %s of `%s`", factor, f.format(best), by)
		}
		if least && mine >= bound || !least && mine <= bound {
			reached = "yes"
		}
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", words[2], f.head, measured, limit, reached)
}

// GoalTable returns the goals as a table; nothing if there are none.
func (p Page) GoalTable(results []*measure.Result) string {
	if p.Goals == "" {
		return ""
	}
	table := "| cell | goal | measured | bound | reached |\n|---|---|---|---|---|\n"
	for goal := range strings.SplitSeq(strings.TrimSpace(p.Goals), "\n") {
		table += check(goal, results)
	}
	return table
}
