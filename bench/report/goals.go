package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/system"
)

// Goal is one thing that redlatch must reach.
type Goal struct {
	Goal, Measured, Bound string
	// Reached is yes, **NO**, or – where the run did not measure what it takes
	// to know.
	Reached string
}

// goals collects them.
type goals struct {
	*Report
	list []Goal
}

// The contenders that goals are about.
var ours, bare, redsyncRueidis = mustFind("redlatch"), mustFind("redlatch-bare"), mustFind("redsync-rueidis")

// Goals compares the results with what must be reached.
func (r *Report) Goals() []Goal {
	g := &goals{Report: r}
	for _, check := range []func(nodes int){g.pair, g.own, g.contended, g.crowd, g.waiting} {
		check(1)
		check(5)
	}
	return g.list
}

// GoalTable returns the goals as a table.
func (r *Report) GoalTable() string {
	var b strings.Builder
	b.WriteString("| goal | measured | bound | reached |\n|---|---|---|---|\n")
	for _, g := range r.Goals() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.Goal, g.Measured, g.Bound, g.Reached)
	}
	return b.String()
}

func (g *goals) add(goal, measured, bound string, reached bool) {
	g.list = append(g.list, Goal{goal, measured, bound, map[bool]string{true: "yes", false: "**NO**"}[reached]})
}

// missing notes a goal that could not be checked.
func (g *goals) missing(goal, bound string) {
	g.list = append(g.list, Goal{goal, "not measured in this run", bound, "–"})
}

// peers returns the contenders that are compared with on a number of servers:
// etcd, with its three members, counts as several.
func peers(nodes int) []*system.System {
	var list []*system.System
	for _, s := range system.All {
		if s.Kind == system.Peer && !s.Aside && (slices.Contains(s.Nodes, nodes) || s.Store == system.Etcd && nodes > 1) {
			list = append(list, s)
		}
	}
	return list
}

func (g *goals) pair(n int) {
	where := fmt.Sprintf("uncontended pair, %s: median ", servers(n))
	mine := g.find(cell.Pair, 0, 0, n, ours)
	check := func(goal string, with *system.System, factor float64, of string) {
		theirs := g.find(cell.Pair, 0, 0, n, with)
		if mine == nil || theirs == nil {
			g.missing(where+goal, fmt.Sprintf("%.2f × %s", factor, of))
			return
		}
		value, base := mine.Pair.Times.Median, theirs.Pair.Times.Median
		bound := time.Duration(factor * float64(base))
		g.add(where+goal, fmt.Sprintf("%s, %.2f ×", short(value), float64(value)/float64(base)),
			fmt.Sprintf("%s, %.2f × %s of %s", short(bound), factor, short(base), of), value <= bound)
	}
	check("beside the floor of the same scripts", floorScripts, map[int]float64{1: 1.25, 5: 1.4}[n], "the floor")
	for _, p := range peers(n) {
		if n == 1 && p == redsyncRueidis {
			check("within 15 % of "+p.Title, p, 1.15, p.Title)
		} else {
			check("below "+p.Title, p, 1, p.Title)
		}
	}
}

func (g *goals) own(n int) {
	where := fmt.Sprintf("64 goroutines on own names, %s: ", servers(n))
	rate := func(s *system.System) float64 {
		for _, x := range g.of(cell.Own) {
			if x.System == s && x.Failed == "" && (x.Nodes == n || s.Store == system.Etcd) {
				return x.Own.PerSecond
			}
		}
		return 0
	}
	best := func(of []*system.System) (theirs float64, title string) {
		for _, p := range of {
			if r := rate(p); r > theirs {
				theirs, title = r, p.Title
			}
		}
		return theirs, title
	}
	check := func(goal string, mine, theirs, factor float64, of string) {
		if mine == 0 || theirs == 0 {
			g.missing(where+goal, fmt.Sprintf("%.2f ×", factor))
			return
		}
		g.add(where+goal, fmt.Sprintf("%s pairs/s, %.2f ×", count(mine), mine/theirs),
			fmt.Sprintf("%s, %.2f × %s of %s", count(factor*theirs), factor, count(theirs), of), mine >= factor*theirs)
	}
	all, allOf := best(peers(n))
	// redsync over rueidis does far less for a pair than the others.
	others, othersOf := best(slices.DeleteFunc(peers(n), func(s *system.System) bool { return s == redsyncRueidis }))
	check("without token and guard, as many as the best peer", rate(bare), all, 1, allOf)
	check("with them, more than every peer but redsync over rueidis", rate(ours), others, 1, othersOf)
	check("with them, 75 % of redsync over rueidis", rate(ours), rate(redsyncRueidis), 0.75, "redsync over rueidis")
}

// The contended cell that the goals are about.
const (
	goalContenders = 16
	goalHeld       = time.Millisecond
)

func (g *goals) contended(n int) {
	where := fmt.Sprintf("contended, %d processes, 1 ms held, %s: ", goalContenders, servers(n))
	cellOf := func(s *system.System) *measure.Result { return g.find(cell.Contended, goalContenders, goalHeld, n, s) }
	x := cellOf(ours)
	if x == nil {
		g.missing(where+"all of it", "")
		return
	}
	c := x.Contended
	handOver := c.HandOver.Median
	trips := func(trip time.Duration) float64 { return float64(handOver) / float64(trip) }
	if f := g.find(cell.Pair, 0, 0, n, floorScripts); f != nil {
		trip := f.Pair.Acquire.Median
		measured := fmt.Sprintf("%s, %.2f round trips", short(handOver), trips(trip))
		if beside := c.RoundTrip.Median; beside > 0 {
			measured += fmt.Sprintf(" (of those beside the contenders, %s: %.2f)", short(beside), trips(beside))
		}
		g.add(where+"median hand-over in raw round trips", measured,
			fmt.Sprintf("3 of %s: the same acquire script over raw sockets, on an idle machine", short(trip)), handOver <= 3*trip)
	} else {
		g.missing(where+"median hand-over in raw round trips", "3")
	}
	bound := 2 * goalContenders * (goalHeld + handOver)
	g.add(where+"p99 wait", short(c.Wait.P99), fmt.Sprintf("%s = 2 × %d × (1 ms + %s)", short(bound), goalContenders, short(handOver)), c.Wait.P99 <= bound)
	g.add(where+"Jain's index", fmt.Sprintf("%.3f", c.Jain), "0.95", c.Jain >= 0.95)
	most := 3.5 * float64(n)
	g.add(where+"client-sent commands a hand-over", fmt.Sprintf("%.1f", c.PerHandOver), fmt.Sprintf("%.1f = 3.5 × %d", most, n), c.PerHandOver <= most && c.HandOvers > 0)
	best, of := 0.0, ""
	for _, p := range peers(n) {
		if y := cellOf(p); y != nil && y.Contended.HandOversRate > best {
			best, of = y.Contended.HandOversRate, p.Title
		}
	}
	if goal := where + "hand-overs a second beside the best peer"; best > 0 {
		g.add(goal, count(c.HandOversRate), fmt.Sprintf("%s of %s", count(best), of), c.HandOversRate >= best)
	} else {
		g.missing(goal, "the best peer's")
	}
}

func (g *goals) crowd(n int) {
	for _, held := range []time.Duration{goalHeld, 0} {
		goal := fmt.Sprintf("commands a hand-over at 1000 waiters beside 16, %d ms held, %s", held.Milliseconds(), servers(n))
		few, many := g.find(cell.Contended, goalContenders, held, n, ours), g.find(cell.Contended, 1000, held, n, ours)
		if few == nil || many == nil || few.Contended.PerHandOver == 0 {
			g.missing(goal, "1.20 ×")
			continue
		}
		a, b := many.Contended.PerHandOver, few.Contended.PerHandOver
		g.add(goal, fmt.Sprintf("%.1f, %.2f ×", a, a/b), fmt.Sprintf("%.1f, 1.20 × %.1f", 1.2*b, b), a > 0 && a <= 1.2*b)
	}
}

// waiting checks that a waiter sends no more than its waiter lease: a renewal
// for each server and second.
func (g *goals) waiting(n int) {
	goal := fmt.Sprintf("a waiting caller's commands a second, %s", servers(n))
	for _, x := range g.of(cell.Waiting) {
		if x.System == ours && x.Nodes == n && x.Failed == "" {
			g.add(goal, fmt.Sprintf("%.2f, of %d waiters, the holder's keep-alive included", x.Waiting.Commands, x.Count),
				fmt.Sprintf("%d: its waiter lease, once a second on each server", n), x.Waiting.Commands <= float64(n))
			return
		}
	}
	g.missing(goal, fmt.Sprint(n))
}
