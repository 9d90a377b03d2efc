package report

import (
	"fmt"
	"math"
	"slices"
)

// bar is a contender's bar; Tail, if it is not 0, where a thin line from its
// end leads to.
type bar struct {
	system      string
	value, tail float64
	label       string
}

// bars draws horizontal bars on a scale from 0, one panel above the other.
func bars(heading, axis string, panels []panelOf[bar]) string {
	const left, right, rowHeight, width = 260.0, 100.0, 22.0, 860.0
	height := 60.0
	for _, p := range panels {
		height += 34 + rowHeight*float64(len(p.items))
	}
	c := newCanvas(width, height)
	c.heading(16, 26, heading)
	c.text(16, 44, "start", pale, axis)
	y := 60.0
	for _, p := range panels {
		most := scaleOf(p.items)
		c.text(16, y+14, "start", ink, p.title)
		y += 24
		for _, b := range p.items {
			long := func(v float64) float64 { return min(v/most, 1) * (width - left - right) }
			c.text(left-8, y+14, "end", ink, title(b.system))
			c.rect(left, y+3, max(long(b.value), 1), rowHeight-7, colour(b.system))
			// A tail beyond the scale is cut at its end.
			if b.tail > b.value {
				c.line(left+long(b.value), y+rowHeight/2, left+long(b.tail), y+rowHeight/2, 1.5, colour(b.system))
			}
			// And so is a bar, which shows it by two white cuts.
			if b.value > most {
				for _, at := range []float64{30, 38} {
					c.line(left+long(b.value)-at-4, y+rowHeight, left+long(b.value)-at+4, y, 3, "#ffffff")
				}
			}
			c.text(width-right+6, y+14, "start", ink, b.label)
			y += rowHeight
		}
		y += 10
	}
	return c.String()
}

// scaleOf returns the value at the end of the scale: the largest, unless that
// would leave the others too short to be told apart.
func scaleOf(items []bar) float64 {
	var values []float64
	for _, b := range items {
		values = append(values, b.value)
	}
	slices.Sort(values)
	most := values[len(values)-1]
	if len(values) > 1 {
		if second := values[len(values)-2]; second > 0 && most > 2.5*second {
			most = 1.4 * second
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// panelOf is one of several parts of a picture.
type panelOf[T any] struct {
	title string
	items []T
}

// series is a contender's line.
type series struct {
	system string
	points [][2]float64
}

// lines draws lines on logarithmic scales, panels side by side.
func lines(heading, across, up string, format func(float64) string, panels []panelOf[series]) string {
	const left, top, panelWidth, panelHeight, gap = 70.0, 84.0, 360.0, 280.0, 70.0
	var keys []string
	var xs, ys []float64
	for _, p := range panels {
		for _, s := range p.items {
			if !slices.Contains(keys, s.system) {
				keys = append(keys, s.system)
			}
			for _, pt := range s.points {
				xs, ys = append(xs, pt[0]), append(ys, pt[1])
			}
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	legend := float64((len(keys)+3)/4)*18 + 16
	c := newCanvas(left+float64(len(panels))*(panelWidth+gap), top+panelHeight+56+legend)
	c.heading(16, 26, heading)
	c.text(16, 44, "start", pale, fmt.Sprintf("%s, by %s; both scales are logarithmic, and the same in both halves", up, across))
	for i, p := range panels {
		x0 := left + float64(i)*(panelWidth+gap)
		x := logAxis{math.Log10(xs[0]) - 0.15, math.Log10(xs[len(xs)-1]) + 0.15, x0, x0 + panelWidth}
		y := newLogAxis(ys, top+panelHeight, top)
		c.text(x0, top-10, "start", ink, p.title)
		for _, t := range y.ticks() {
			c.line(x0, y.at(t), x0+panelWidth, y.at(t), 1, grid)
			c.text(x0-6, y.at(t)+4, "end", pale, format(t))
		}
		for _, t := range xs {
			c.line(x.at(t), top, x.at(t), top+panelHeight, 1, grid)
			c.text(x.at(t), top+panelHeight+18, "middle", pale, fmt.Sprintf("%g", t))
		}
		for _, s := range p.items {
			var at [][2]float64
			for _, pt := range s.points {
				if pt[1] > 0 {
					at = append(at, [2]float64{x.at(pt[0]), y.at(pt[1])})
				}
			}
			if len(at) > 1 {
				c.path(at, colour(s.system), 2)
			}
			for _, pt := range at {
				c.dot(pt[0], pt[1], colour(s.system))
			}
		}
	}
	for i, k := range keys {
		x, y := left+float64(i%4)*205, top+panelHeight+46+float64(i/4)*18
		c.rect(x, y-9, 12, 10, colour(k))
		c.text(x+18, y, "start", ink, title(k))
	}
	return c.String()
}
