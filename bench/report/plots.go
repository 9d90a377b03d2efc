package report

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
)

// plot is a picture and the file it goes to.
type plot struct{ file, title, svg string }

// plots returns the pictures for which there are numbers.
func (r *Report) plots() []plot {
	var plots []plot
	add := func(file, title, svg string) {
		if svg != "" {
			plots = append(plots, plot{file, title, svg})
		}
	}
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	add("pair.svg", "Uncontended pair", r.barPlot(cell.Pair, "Uncontended pair: lock and release", "median; the thin line leads to the 99th percentile; shorter is better",
		func(x measure.Result) (bar, bool) {
			if x.Pair == nil {
				return bar{}, false
			}
			return bar{value: micro(x.Pair.Times.Median), tail: micro(x.Pair.Times.P99), label: short(x.Pair.Times.Median)}, true
		}))
	add("own.svg", "64 goroutines on names of their own", r.barPlot(cell.Own, "64 goroutines on names of their own", "pairs a second; longer is better",
		func(x measure.Result) (bar, bool) {
			if x.Own == nil {
				return bar{}, false
			}
			return bar{value: x.Own.PerSecond, label: count(x.Own.PerSecond) + " /s"}, true
		}))
	// The marks of an axis are powers of ten, and look odd with decimals.
	duration := func(f float64) string { return time.Duration(f * 1e6).String() }
	for _, held := range r.Settings.Held {
		ms := held.Milliseconds()
		for _, p := range []struct {
			file, title, up string
			format          func(float64) string
			value           func(*measure.Contended) float64
		}{
			{"wait", "The 99th percentile of the wait", "from asking to having the lock", duration, func(c *measure.Contended) float64 { return float64(c.Wait.P99) / 1e6 }},
			{"handover", "The median hand-over", "from the release being called to the next holder running", duration, func(c *measure.Contended) float64 { return float64(c.HandOver.Median) / 1e6 }},
			{"rate", "Hand-overs a second", "hand-overs to another contender", count, func(c *measure.Contended) float64 { return c.HandOversRate }},
			{"commands", "Commands a hand-over", "client-sent commands, all servers together", count, func(c *measure.Contended) float64 { return c.PerHandOver }},
		} {
			heading := fmt.Sprintf("%s, %d ms held", p.title, ms)
			add(fmt.Sprintf("%s-%dms.svg", p.file, ms), heading, r.linePlot(held, heading, p.up, p.format, p.value))
		}
	}
	return plots
}

// barPlot draws a bar for each contender; a panel for each number of servers,
// etcd's three members with the several.
func (r *Report) barPlot(kind cell.Kind, heading, axis string, of func(measure.Result) (bar, bool)) string {
	var panels []panelOf[bar]
	for _, n := range r.Settings.Nodes {
		var items []bar
		for _, x := range r.of(kind) {
			if x.Nodes != n && !(x.System == "etcd" && n > 1) || x.Failed != "" {
				continue
			}
			if b, ok := of(x); ok {
				b.system = x.System
				items = append(items, b)
			}
		}
		if len(items) > 0 {
			panels = append(panels, panelOf[bar]{servers(n), items})
		}
	}
	if len(panels) == 0 {
		return ""
	}
	return bars(heading, axis, panels)
}

// linePlot draws a line for each contender over the number of contenders.
func (r *Report) linePlot(held time.Duration, heading, up string, format func(float64) string, of func(*measure.Contended) float64) string {
	var panels []panelOf[series]
	for _, n := range r.Settings.Nodes {
		var items []series
		at := map[string]int{}
		for _, x := range r.of(cell.Contended) {
			if x.Held != held || x.Contended == nil || x.Failed != "" || x.Nodes != n && !(x.System == "etcd" && n > 1) {
				continue
			}
			i, known := at[x.System]
			if !known {
				i = len(items)
				at[x.System] = i
				items = append(items, series{system: x.System})
			}
			items[i].points = append(items[i].points, [2]float64{float64(x.Count), of(x.Contended)})
		}
		if len(items) > 0 {
			panels = append(panels, panelOf[series]{servers(n), items})
		}
	}
	if len(panels) == 0 {
		return ""
	}
	return lines(heading, "number of contenders", up, format, panels)
}
