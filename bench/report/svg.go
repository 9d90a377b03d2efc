package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// canvas is an SVG picture in the making.
type canvas struct {
	b             strings.Builder
	width, height float64
}

func newCanvas(width, height float64) *canvas {
	c := &canvas{width: width, height: height}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&c.b, `<rect width="%g" height="%g" fill="#ffffff"/>`+"\n", width, height)
	return c
}

func (c *canvas) String() string { return c.b.String() + "</svg>\n" }

// text writes a text; anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, fill, s string) {
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, fill, html.EscapeString(s))
}

func (c *canvas) heading(x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" font-size="15" font-weight="600" fill="#111827">%s</text>`+"\n", x, y, html.EscapeString(s))
}

func (c *canvas) rect(x, y, w, h float64, fill string) {
	fmt.Fprintf(&c.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s"/>`+"\n", x, y, w, h, fill)
}

func (c *canvas) line(x1, y1, x2, y2, width float64, stroke string) {
	fmt.Fprintf(&c.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>`+"\n", x1, y1, x2, y2, stroke, width)
}

func (c *canvas) dot(x, y float64, fill string) {
	fmt.Fprintf(&c.b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, fill)
}

func (c *canvas) path(points [][2]float64, stroke string, width float64) {
	var d strings.Builder
	for i, p := range points {
		fmt.Fprintf(&d, "%c%.1f %.1f ", "ML"[min(i, 1)], p[0], p[1])
	}
	fmt.Fprintf(&c.b, `<path d="%s" fill="none" stroke="%s" stroke-width="%g"/>`+"\n", strings.TrimSpace(d.String()), stroke, width)
}

const (
	ink  = "#111827"
	pale = "#6b7280"
	grid = "#e5e7eb"
)

// colours are those of the contenders, the same in every picture.
var colours = map[string]string{
	"redlatch": "#c2410c", "redlatch-bare": "#f59e0b", "redlatch-goredis": "#9f1239",
	"redsync-goredis": "#1d4ed8", "redsync-rueidis": "#0891b2", "redsync-failfast": "#67a5d8",
	"redislock": "#7c3aed", "rueidislock": "#15803d", "etcd": "#4b5563",
	"floor-plain": "#d1d5db", "floor-scripts": "#9ca3af",
}

func colour(key string) string {
	if c, ok := colours[key]; ok {
		return c
	}
	return "#000000"
}

// logAxis maps values on a logarithmic axis to places.
type logAxis struct{ low, high, from, to float64 }

// newLogAxis returns an axis that begins and ends at powers of ten.
func newLogAxis(values []float64, from, to float64) logAxis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if math.IsInf(low, 0) {
		low, high = 1, 10
	}
	low, high = math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if low == high {
		high++
	}
	return logAxis{low, high, from, to}
}

func (a logAxis) at(v float64) float64 {
	if v <= 0 {
		return a.from
	}
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// ticks returns the powers of ten on the axis.
func (a logAxis) ticks() []float64 {
	var t []float64
	for e := a.low; e <= a.high; e++ {
		t = append(t, math.Pow(10, e))
	}
	return t
}
