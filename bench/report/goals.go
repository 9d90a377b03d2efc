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
var (
	ours, oursGoRedis              = mustFind("redlatch"), mustFind("redlatch-goredis")
	redsyncRueidis, redsyncGoRedis = mustFind("redsync-rueidis"), mustFind("redsync-goredis")
	guardedScripts, ideal          = mustFind("floor-guarded"), mustFind("floor-wakes")
)

// Goals compares the results with what must be reached.
func (r *Report) Goals() []Goal {
	g := &goals{Report: r}
	for _, check := range []func(nodes int){g.pair, g.scripts, g.own, g.linked, g.slow, g.contended, g.crowd, g.waiting} {
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

// beside checks that one contender's time in a cell is at most factor times
// another's.
func (g *goals) beside(goal string, kind cell.Kind, n int, a, b *system.System, factor float64, of func(*measure.Result) time.Duration) {
	mine, theirs := g.find(kind, 0, 0, n, a), g.find(kind, 0, 0, n, b)
	if mine == nil || theirs == nil {
		g.missing(goal, fmt.Sprintf("%.2f × %s", factor, b.Title))
		return
	}
	value, base := of(mine), of(theirs)
	bound := time.Duration(factor * float64(base))
	g.add(goal, fmt.Sprintf("%s, %.2f ×", short(value), float64(value)/float64(base)),
		fmt.Sprintf("%s, %.2f × %s of %s", short(bound), factor, short(base), b.Title), value <= bound)
}

func medianPair(x *measure.Result) time.Duration { return x.Pair.Times.Median }
func p99Pair(x *measure.Result) time.Duration    { return x.Pair.Times.P99 }

func (g *goals) pair(n int) {
	where := fmt.Sprintf("uncontended pair, %s: ", servers(n))
	g.beside(where+"redlatch beside redsync over rueidis", cell.Pair, n, ours, redsyncRueidis, map[int]float64{1: 1.05, 5: 1.35}[n], medianPair)
	if n == 1 {
		g.beside(where+"redlatch below redsync over go-redis", cell.Pair, n, ours, redsyncGoRedis, 1, medianPair)
	}
	g.beside(where+"both over go-redis", cell.Pair, n, oursGoRedis, redsyncGoRedis, map[int]float64{1: 1.15, 5: 1.3}[n], medianPair)
}

func (g *goals) scripts(n int) {
	g.beside(fmt.Sprintf("the scripts alone, guard on, %s", servers(n)), cell.Scripts, n, guardedScripts, floorPlain, map[int]float64{1: 1.4, 5: 1.55}[n], medianPair)
}

func (g *goals) own(n int) {
	where := fmt.Sprintf("64 goroutines on own names, %s: ", servers(n))
	rate := func(s *system.System) float64 {
		for _, x := range g.of(cell.Own) {
			if x.System == s && x.Failed == "" && x.Nodes == n {
				return x.Own.PerSecond
			}
		}
		return 0
	}
	check := func(goal string, a, b *system.System, factor float64) {
		mine, theirs := rate(a), rate(b)
		if mine == 0 || theirs == 0 {
			g.missing(where+goal, fmt.Sprintf("%.2f ×", factor))
			return
		}
		g.add(where+goal, fmt.Sprintf("%s pairs/s, %.2f ×", count(mine), mine/theirs),
			fmt.Sprintf("%s, %.2f × %s of %s", count(factor*theirs), factor, count(theirs), b.Title), mine >= factor*theirs)
	}
	check("redlatch beside redsync over rueidis", ours, redsyncRueidis, 0.7)
	check("both over go-redis", oursGoRedis, redsyncGoRedis, 0.9)
}

// best returns the peer with the shortest median in a cell; nil if none was
// measured.
func (g *goals) best(kind cell.Kind, n int) *system.System {
	var best *measure.Result
	for _, p := range peers(n) {
		if x := g.find(kind, 0, 0, n, p); x != nil && p.Store == system.Redis && (best == nil || medianPair(x) < medianPair(best)) {
			best = x
		}
	}
	if best == nil {
		return nil
	}
	return best.System
}

func (g *goals) linked(n int) {
	goal := fmt.Sprintf("uncontended pair over links of 1 ms, %s", servers(n))
	if b := g.best(cell.LinkedPair, n); b != nil {
		g.beside(goal, cell.LinkedPair, n, ours, b, 1.05, medianPair)
	} else {
		g.missing(goal, "1.05 × the best peer")
	}
}

func (g *goals) slow(n int) {
	if n == 1 {
		return // it takes a majority without the slow one
	}
	for _, p := range peers(n) {
		if p.Store == system.Redis {
			where := "uncontended pair, one link of 20 ms and four of 1 ms: "
			g.beside(where+"median below "+p.Title, cell.SlowPair, n, ours, p, 1, medianPair)
			g.beside(where+"p99 below "+p.Title, cell.SlowPair, n, ours, p, 1, p99Pair)
		}
	}
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
	if i := cellOf(ideal); i != nil {
		bound := 2 * i.Contended.Wait.P99
		g.add(where+"p99 wait beside the ideal", fmt.Sprintf("%s, %.2f ×", short(c.Wait.P99), float64(c.Wait.P99)/float64(i.Contended.Wait.P99)),
			fmt.Sprintf("%s, 2.00 × %s of %s", short(bound), short(i.Contended.Wait.P99), ideal.Title), c.Wait.P99 <= bound)
	} else {
		g.missing(where+"p99 wait beside the ideal", "2.00 ×")
	}
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
