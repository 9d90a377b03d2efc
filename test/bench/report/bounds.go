package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// Bound is a row of the table of bounds.
type Bound struct {
	// Row says what is measured, Of where, like "rate of own/64/1/redlatch".
	Row, Of string
	// Must and Aim are limits; either may be missing. A limit is a number, or a
	// multiple of the best of some cells, of all, of the fair or of the fairest:
	//
	//	<= 22
	//	>= 1 × own/64/1/redsync-rueidis own/64/1/redislock
	//	>= 1 × fair goroutines/16/1ms/1/rueidislock goroutines/16/1ms/3/etcd
	Must, Aim string
}

// Outcome is whether a limit is kept.
type Outcome int

// Outcomes of a limit: Unknown if the run did not measure what it takes.
const (
	Unknown Outcome = iota
	Missed
	Met
)

func (o Outcome) String() string { return [...]string{"–", "**NO**", "yes"}[o] }

// Verdict is what a run says about a bound: what was measured, the limits in
// figures, and whether they are kept.
type Verdict struct {
	Value, Must, Aim string
	Met, Reached     Outcome
}

// Judge compares a run with a bound.
func (b Bound) Judge(results []*measure.Result) Verdict {
	name, id, _ := strings.Cut(b.Of, " of ")
	f := figures[name]
	v, mine := Verdict{Value: "not measured"}, value(f, find(results, id))
	var base float64
	v.Aim, _, v.Reached = limit(b.Aim, f, mine, results)
	v.Must, base, v.Met = limit(b.Must, f, mine, results)
	if mine > 0 {
		v.Value = f.format(mine)
	}
	if mine > 0 && base > 0 {
		v.Value += fmt.Sprintf(", %s ×", Digits(mine/base))
	}
	return v
}

// fair is the least of Jain's index that counts as fair.
const fair = 0.95

// limit judges a figure by a limit. It returns the limit as text, and what it is a
// multiple of, if it is one and that was measured.
func limit(limit string, f figure, mine float64, results []*measure.Result) (text string, base float64, _ Outcome) {
	words := strings.Fields(limit)
	if len(words) == 0 {
		return "", 0, Unknown
	}
	least, bound := words[0] == ">=", 0.0
	fmt.Sscan(words[1], &bound)
	text = strings.NewReplacer("<=", "≤ ", ">=", "≥ ").Replace(words[0])
	if len(words) == 2 {
		text += f.format(bound)
	} else {
		text += words[1] + " ×"
		cells := fairOnes(words[3], measured(words[3:], f, results))
		if cells != nil && len(cells) == 0 {
			return text + " the best that is fair: none is", 0, Met
		}
		for _, x := range cells {
			if n := value(f, x); base == 0 || n != base && n > base == least {
				base = n
				name := x.Title
				if x.Group == contender.Ours {
					name = "`" + x.CellID() + "`"
				}
				text = fmt.Sprintf("%s %s × %s of %s", text[:strings.Index(text, " ")], words[1], f.format(n), name)
			}
		}
		bound *= base
	}
	switch {
	case mine == 0 || bound == 0:
		return text, base, Unknown
	case least && mine < bound || !least && mine > bound:
		return text, base, Missed
	}
	return text, base, Met
}

// measured returns the cells that have a figure; nil if none has.
func measured(ids []string, f figure, results []*measure.Result) (cells []*measure.Result) {
	for _, id := range ids {
		if x := find(results, id); value(f, x) > 0 {
			cells = append(cells, x)
		}
	}
	return cells
}

// fairOnes returns those of some cells that count: all, the fair or the fairest.
func fairOnes(which string, cells []*measure.Result) []*measure.Result {
	switch {
	case which == "fair" && cells != nil:
		return slices.DeleteFunc(cells, func(x *measure.Result) bool { return x.Jain < fair })
	case which == "fairest" && cells != nil:
		return []*measure.Result{slices.MaxFunc(cells, func(a, b *measure.Result) int { return cmp.Compare(a.Jain, b.Jain) })}
	}
	return cells
}

// find returns the result of a cell; nil if there is none that is valid.
func find(results []*measure.Result, id string) *measure.Result {
	for _, x := range results {
		if x.CellID() == id && x.Failed == "" {
			return x
		}
	}
	return nil
}

// value returns a figure of a result; 0 if there is none.
func value(f figure, x *measure.Result) float64 {
	if x == nil {
		return 0
	}
	return stats.Median(f.of(x))
}

// BoundTable returns the bounds and their verdicts as a table.
func (p Page) BoundTable(results []*measure.Result) (table string) {
	for i, b := range p.Bounds {
		if i == 0 {
			table = "| | measured | must | met | aim | reached | cell |\n|---|---|---|---|---|---|---|\n"
		}
		v := b.Judge(results)
		_, id, _ := strings.Cut(b.Of, " of ")
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | `%s` |\n", b.Row, v.Value, v.Must, v.Met, v.Aim, v.Reached, id)
	}
	return table
}
