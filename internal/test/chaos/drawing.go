//go:build unix

package chaos

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// drawing is the history over time, as SVG: a lane for each name, its tokens,
// each node and each client.
type drawing struct {
	*Result
	text   strings.Builder
	labels []label
	width  int
	y      int     // where the next lane begins
	scale  float64 // pixels for a nanosecond
}

// The size of things, in pixels.
const (
	axisHeight  = 24
	nameHeight  = 40
	tokenHeight = 56
	nodeHeight  = 24
	laneGap     = 6

	// finest is the least distance between two things that are both drawn.
	finest = 0.2
)

func newDrawing(r *Result) *drawing {
	d := &drawing{Result: r}
	length := float64(r.Ended - r.Began)
	d.width = int(math.Min(12_000, math.Max(900, length/1e9*60)))
	d.scale = float64(d.width) / math.Max(length, 1)
	d.y = axisHeight
	byName := r.History.leases()
	for _, name := range sortedNames(byName) {
		d.name(name, byName[name])
		d.tokens(byName[name])
	}
	nodes := 0
	for _, f := range r.History.Faults {
		nodes = max(nodes, f.Node)
	}
	for n := 1; n <= nodes; n++ {
		d.faults(fmt.Sprintf("node %d", n), func(f *Fault) bool { return f.Node == n })
	}
	for c := 1; c <= r.History.Clients; c++ {
		d.faults(fmt.Sprintf("client %d", c), func(f *Fault) bool { return f.Client == c })
	}
	d.axis()
	return d
}

func (d *drawing) x(at int64) float64 {
	return math.Max(0, math.Min(float64(d.width), float64(at-d.Began)*d.scale))
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

// lane begins a lane.
func (d *drawing) lane(text string, height int) (top int) {
	top = d.y
	d.labels = append(d.labels, label{text, top + height/2 + 4})
	d.printf(`<rect class="lane" x="0" y="%d" width="%d" height="%d"/>`, top, d.width, height)
	d.y += height + laneGap
	return top
}

// axis draws a line for every so many seconds, over all lanes, and one where the
// faults end.
func (d *drawing) axis() {
	seconds := float64(d.Ended-d.Began) / 1e9
	every := 1.0
	for _, e := range []float64{1, 2, 5, 10, 30, 60, 300} {
		every = e
		if float64(d.width)/seconds*e >= 60 {
			break
		}
	}
	for s := 0.0; s <= seconds; s += every {
		x := s * 1e9 * d.scale
		d.printf(`<line class="tick" x1="%.1f" x2="%.1f" y1="14" y2="100%%"/><text class="tick" x="%.1f" y="11">%gs</text>`, x, x, x+2, s)
	}
	healed := d.x(d.History.Healed)
	d.printf(`<line class="healed" x1="%.1f" x2="%.1f" y1="14" y2="100%%"><title>all faults are healed</title></line>`, healed, healed)
}

// colour is that of a client.
func colour(client, of int) string {
	return fmt.Sprintf("hsl(%d 62%% %d%%)", (client-1)*360/max(of, 1), 46+10*(client%2))
}

// band is where in its lane a lease is drawn: a writer over all of its height, a
// slot in its part of it, a reader in its client's.
func (d *drawing) band(l *Lease, s Share) (y, height float64) {
	const all = nameHeight - 14
	switch s.Mode {
	case Slot:
		height = all / math.Max(float64(s.Slots), 1)
		return height * float64(s.Slot), height
	case Reader:
		height = all / math.Max(float64(d.History.Clients), 1)
		return height * float64(l.Client-1), height
	}
	return 0, all
}

// name draws who held a lock when, and when the resource refused which token.
func (d *drawing) name(name string, leases []*Lease) {
	top := d.lane(name, nameHeight)
	drawn := map[float64]float64{} // by height in the lane: up to where
	draw := func(l *Lease, s Share, from, to int64) {
		x, end := d.x(from), d.x(to)
		y, height := d.band(l, s)
		if last, ok := drawn[y]; ok && end-last < finest {
			return // too close to the last one to be visible
		}
		drawn[y] = end
		d.printf(`<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"><title>%s, from %.3f s for %.1f ms</title></rect>`,
			x, float64(top+12)+y, math.Max(end-x, 0.7), height, colour(l.Client, d.History.Clients),
			html.EscapeString(l.String()), float64(from-d.Began)/1e9, float64(to-from)/1e6)
	}
	for _, l := range leases {
		if l.Down == 0 || l.Down >= l.Until {
			draw(l, l.Share, l.Got, l.Until)
			continue
		}
		draw(l, l.Share, l.Got, l.Down)
		draw(l, l.at(l.Down), l.Down, l.Until)
	}
	for _, l := range leases {
		for _, at := range l.Refused {
			x := d.x(at)
			d.printf(`<path class="refused" d="M%.1f %d l8 8 m0 -8 l-8 8"><title>refused: %s, at %.3f s</title></path>`,
				x-4, top+2, html.EscapeString(l.String()), float64(at-d.Began)/1e9)
		}
	}
	for _, list := range [][]Finding{d.Verdict.Violations, d.Verdict.Excused} {
		for _, f := range list {
			if f.Name == name && f.At > 0 {
				class := "violation"
				if f.Excuse != "" {
					class = "excused"
				}
				x := d.x(f.At)
				d.printf(`<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"><title>%s: %s</title></line>`,
					class, x, x, top, top+nameHeight, f.Rule, html.EscapeString(f.Text))
			}
		}
	}
}

// tokens draws the token of each lease when it was given, and those that the
// resource refused: they lie below the line.
func (d *drawing) tokens(leases []*Lease) {
	top := d.lane("tokens", tokenHeight)
	if len(leases) == 0 {
		return
	}
	least, most := leases[0].Token, leases[0].Token
	for _, l := range leases {
		least, most = min(least, l.Token), max(most, l.Token)
	}
	y := func(token uint64) float64 {
		return float64(top+tokenHeight-4) - float64(token-least)/math.Max(float64(most-least), 1)*(tokenHeight-8)
	}
	d.text.WriteString(`<path class="tokens" d="`)
	step, drawn := "M", -1.0
	for _, l := range leases {
		if x := d.x(l.Got); x-drawn >= finest {
			fmt.Fprintf(&d.text, "%s%.1f %.1f", step, x, y(l.Token))
			step, drawn = "L", x
		}
	}
	d.printf(`"/>`)
	for _, l := range leases {
		for _, at := range l.Refused {
			d.printf(`<circle class="refused" cx="%.1f" cy="%.1f" r="3"><title>refused: %s</title></circle>`, d.x(at), y(l.Token), html.EscapeString(l.String()))
		}
	}
}

// faults draws the faults of one target.
func (d *drawing) faults(what string, is func(*Fault) bool) {
	top := d.lane(what, nodeHeight)
	for i := range d.History.Faults {
		f := &d.History.Faults[i]
		if !is(f) {
			continue
		}
		x := d.x(f.From)
		width := math.Max(d.x(f.To)-x, 3)
		class := "within"
		if f.Beyond {
			class = "beyond"
		}
		d.printf(`<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"><title>%s: %s; from %.3f s for %.0f ms</title></rect>`,
			class, x, top+3, width, nodeHeight-6, f.Family, html.EscapeString(f.Detail), float64(f.From-d.Began)/1e9, float64(f.To-f.From)/1e6)
		if width > float64(7*len(f.Family)) {
			d.printf(`<text class="fault" x="%.1f" y="%d">%s</text>`, x+4, top+nodeHeight/2+4, f.Family)
		}
	}
}
