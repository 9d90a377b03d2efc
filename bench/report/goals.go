package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/system"
)

// Goal is one thing that redlatch must reach.
type Goal struct {
	Goal     string `json:"goal"`
	Measured string `json:"measured"`
	Bound    string `json:"bound"`
	// Reached is nil where the run did not measure what it takes to know.
	Reached *bool `json:"reached"`
}

// goals collects them.
type goals struct {
	r    *Report
	list []Goal
}

// CheckGoals holds the results against what must be reached.
func (r *Report) CheckGoals() []Goal {
	g := &goals{r: r}
	for _, n := range []int{1, 5} {
		g.pair(n)
	}
	for _, n := range []int{1, 5} {
		g.own(n)
	}
	for _, n := range []int{1, 5} {
		g.contended(n)
	}
	for _, n := range []int{1, 5} {
		g.crowd(n)
	}
	for _, n := range []int{1, 5} {
		g.waiting(n)
	}
	return g.list
}

func (g *goals) add(goal, measured, bound string, reached bool) {
	g.list = append(g.list, Goal{goal, measured, bound, &reached})
}

// missing notes a goal that could not be checked.
func (g *goals) missing(goal, bound string) {
	g.list = append(g.list, Goal{goal, "not measured in this run", bound, nil})
}

// atMost checks value ≤ factor × base, both being times.
func (g *goals) atMost(goal string, value, base time.Duration, factor float64, of string) {
	bound := time.Duration(factor * float64(base))
	g.add(goal, fmt.Sprintf("%s, %.2f ×", short(value), float64(value)/float64(base)),
		fmt.Sprintf("%s, %.2f × %s of %s", short(bound), factor, short(base), of), value <= bound)
}

// peers returns the contenders that are compared with on a number of servers:
// etcd, whose three members are in between, with the several.
func peers(nodes int) []*system.System {
	var list []*system.System
	for _, s := range system.All() {
		if s.Kind != system.Peer || s.Aside {
			continue
		}
		for _, n := range s.Nodes {
			if n == nodes || s.Store == system.Etcd && nodes > 1 {
				list = append(list, s)
			}
		}
	}
	return list
}

func (g *goals) cell(kind cell.Kind, count int, held time.Duration, nodes int, sys string) *measure.Result {
	if s, err := system.Find(sys); err == nil && s.Store == system.Etcd {
		nodes = s.Nodes[0]
	}
	return g.r.find(cell.Cell{Kind: kind, Count: count, Held: held, Nodes: nodes, System: sys})
}

func (g *goals) pairMedian(nodes int, sys string) (time.Duration, bool) {
	if x := g.cell(cell.Pair, 0, 0, nodes, sys); x != nil && x.Pair != nil {
		return x.Pair.Times.Median, true
	}
	return 0, false
}

func (g *goals) pair(n int) {
	where := fmt.Sprintf("uncontended pair, %s: ", servers(n))
	factor := map[int]float64{1: 1.25, 5: 1.4}[n]
	ours, ok := g.pairMedian(n, "redlatch")
	floor, ok2 := g.pairMedian(n, "floor-scripts")
	if goal := where + "median beside the floor of the same scripts"; ok && ok2 {
		g.atMost(goal, ours, floor, factor, "the floor")
	} else {
		g.missing(goal, fmt.Sprintf("%.2f × the floor", factor))
	}
	for _, p := range peers(n) {
		theirs, ok2 := g.pairMedian(n, p.Key)
		goal, factor := where+"median below "+p.Title, 1.0
		if n == 1 && p.Key == "redsync-rueidis" {
			goal, factor = where+"median within 15 % of "+p.Title, 1.15
		}
		if ok && ok2 {
			g.atMost(goal, ours, theirs, factor, p.Title)
		} else {
			g.missing(goal, fmt.Sprintf("%.2f ×", factor))
		}
	}
}

func (g *goals) ownRate(nodes int, sys string) (float64, bool) {
	for _, x := range g.r.of(cell.Own) {
		if x.System == sys && x.Failed == "" && x.Own != nil && (x.Nodes == nodes || sys == "etcd") {
			return x.Own.PerSecond, true
		}
	}
	return 0, false
}

func (g *goals) own(n int) {
	where := fmt.Sprintf("64 goroutines on own names, %s: ", servers(n))
	on, ok := g.ownRate(n, "redlatch")
	off, okOff := g.ownRate(n, "redlatch-bare")
	var best, rueidis, others float64
	var bestOf, othersOf string
	for _, p := range peers(n) {
		rate, _ := g.ownRate(n, p.Key)
		if rate > best {
			best, bestOf = rate, p.Title
		}
		if p.Key == "redsync-rueidis" {
			rueidis = rate // it does far less for a pair than the others
		} else if rate > others {
			others, othersOf = rate, p.Title
		}
	}
	check := func(goal string, ok bool, ours, theirs, factor float64, of string) {
		if !ok || theirs == 0 {
			g.missing(where+goal, fmt.Sprintf("%.2f ×", factor))
			return
		}
		g.add(where+goal, fmt.Sprintf("%s pairs/s, %.2f ×", count(ours), ours/theirs),
			fmt.Sprintf("%s, %.2f × %s of %s", count(factor*theirs), factor, count(theirs), of), ours >= factor*theirs)
	}
	check("without token and guard, as many as the best peer", okOff, off, best, 1, bestOf)
	check("with them, more than every peer but redsync over rueidis", ok, on, others, 1, othersOf)
	check("with them, 75 % of redsync over rueidis", ok, on, rueidis, 0.75, "redsync over rueidis")
}

// The contended cell that the goals are about.
const (
	goalContenders = 16
	goalHeld       = time.Millisecond
)

func (g *goals) contended(n int) {
	where := fmt.Sprintf("contended, %d processes, 1 ms held, %s: ", goalContenders, servers(n))
	x := g.cell(cell.Contended, goalContenders, goalHeld, n, "redlatch")
	if x == nil || x.Contended == nil {
		g.missing(where+"all of it", "")
		return
	}
	c := x.Contended
	trip, ok := g.rawRoundTrip(n)
	if goal := where + "median hand-over in raw round trips"; ok {
		measured := fmt.Sprintf("%s, %.2f round trips", short(c.HandOver.Median), float64(c.HandOver.Median)/float64(trip))
		if c.RoundTrip != nil {
			measured += fmt.Sprintf(" (of those beside the contenders, %s: %.2f)", short(c.RoundTrip.Median), float64(c.HandOver.Median)/float64(c.RoundTrip.Median))
		}
		g.add(goal, measured, fmt.Sprintf("3 of %s: the same acquire script over raw sockets, on an idle machine", short(trip)), c.HandOver.Median <= 3*trip)
	} else {
		g.missing(goal, "3")
	}
	bound := 2 * goalContenders * (goalHeld + c.HandOver.Median)
	g.add(where+"p99 wait", short(c.Wait.P99), fmt.Sprintf("%s = 2 × %d × (1 ms + %s)", short(bound), goalContenders, short(c.HandOver.Median)), c.Wait.P99 <= bound)
	g.add(where+"Jain's index", fmt.Sprintf("%.3f", c.Jain), "0.95", c.Jain >= 0.95)
	g.add(where+"client-sent commands a hand-over", fmt.Sprintf("%.1f", c.PerHandOver), fmt.Sprintf("%.1f = 3.5 × %d", 3.5*float64(n), n), c.PerHandOver <= 3.5*float64(n) && c.HandOvers > 0)
	best, of := 0.0, "no peer"
	for _, p := range peers(n) {
		if y := g.cell(cell.Contended, goalContenders, goalHeld, n, p.Key); y != nil && y.Contended != nil && y.Contended.HandOversRate > best {
			best, of = y.Contended.HandOversRate, p.Title
		}
	}
	if goal := where + "hand-overs a second beside the best peer"; best > 0 {
		g.add(goal, count(c.HandOversRate), fmt.Sprintf("%s of %s", count(best), of), c.HandOversRate >= best)
	} else {
		g.missing(goal, "the best peer's")
	}
}

// rawRoundTrip returns the median of the acquire script over raw sockets.
func (g *goals) rawRoundTrip(n int) (time.Duration, bool) {
	if x := g.cell(cell.Pair, 0, 0, n, "floor-scripts"); x != nil && x.Pair != nil && x.Pair.Acquire != nil {
		return x.Pair.Acquire.Median, true
	}
	return 0, false
}

func (g *goals) crowd(n int) {
	for _, held := range []time.Duration{goalHeld, 0} {
		goal := fmt.Sprintf("commands a hand-over at 1000 waiters beside 16, %d ms held, %s", held.Milliseconds(), servers(n))
		few := g.cell(cell.Contended, goalContenders, held, n, "redlatch")
		many := g.cell(cell.Contended, 1000, held, n, "redlatch")
		if few == nil || many == nil || few.Contended.PerHandOver == 0 {
			g.missing(goal, "1.20 ×")
			continue
		}
		a, b := many.Contended.PerHandOver, few.Contended.PerHandOver
		g.add(goal, fmt.Sprintf("%.1f, %.2f ×", a, a/b), fmt.Sprintf("%.1f, 1.20 × %.1f", 1.2*b, b), a > 0 && a <= 1.2*b)
	}
}

// waiting checks that waiting costs no traffic but the waiter lease: a renewal
// for each server and second would be all that it needs.
func (g *goals) waiting(n int) {
	goal := fmt.Sprintf("a waiting caller's commands a second, %s", servers(n))
	for _, x := range g.r.of(cell.Waiting) {
		if x.System == "redlatch" && x.Nodes == n && x.Failed == "" && x.Waiting != nil {
			g.add(goal, fmt.Sprintf("%.2f, of %d waiters, the holder's keep-alive included", x.Waiting.Commands, x.Count),
				fmt.Sprintf("%d: its waiter lease, once a second on each server", n), x.Waiting.Commands <= float64(n))
			return
		}
	}
	g.missing(goal, fmt.Sprint(n))
}

// GoalTable returns the goals as a table.
func (r *Report) GoalTable() string {
	var b strings.Builder
	b.WriteString("| goal | measured | bound | reached |\n|---|---|---|---|\n")
	for _, g := range r.Goals {
		reached := "–"
		if g.Reached != nil {
			reached = map[bool]string{true: "yes", false: "**NO**"}[*g.Reached]
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.Goal, g.Measured, g.Bound, reached)
	}
	return b.String()
}

func servers(n int) string {
	if n == 1 {
		return "1 server"
	}
	return fmt.Sprintf("%d servers", n)
}
