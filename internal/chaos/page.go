//go:build unix

package chaos

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageText string

// page is what the template shows.
type page struct {
	*Result
	Title    string
	Headline string
	Good     bool
	Facts    []fact
	Labels   []label
	Drawing  template.HTML
	Width    int
	Height   int
	Within   []Family
	Beyond   []Family
	Clients  []swatch
}

// fact is a line of the table.
type fact struct{ Name, Value string }

// label names a lane of the drawing.
type label struct {
	Text string
	Y    int
}

// swatch is the colour of a client.
type swatch struct {
	Number int
	Colour template.CSS
}

// Page writes the history as a page of HTML that needs no other file: who held
// a lock when, which faults were injected, and the tokens.
func (r *Result) Page(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"since": func(at int64) string {
		if at == 0 {
			return "–"
		}
		return fmt.Sprintf("%.3f s", float64(at-r.Began)/1e9)
	}}).Parse(pageText)
	if err != nil {
		return err
	}
	d := newDrawing(r)
	p := page{Result: r, Title: fmt.Sprintf("redlatch-torture, seed %d", r.Seed), Headline: r.Headline(), Good: r.Verdict.Held(),
		Labels: d.labels, Width: d.width, Height: d.y, Drawing: template.HTML(d.text.String())} // everything in it was escaped
	v := r.Verdict
	p.Facts = []fact{
		{"acquisitions", fmt.Sprint(v.Acquisitions)}, {"attempts without a lock", fmt.Sprint(v.Missed)},
		{"writes accepted", fmt.Sprint(v.Writes)}, {"stale steps refused by the resource", fmt.Sprint(v.Refused)},
		{"leases that ended before their release", fmt.Sprint(v.Lost)}, {"faults", fmt.Sprint(v.Faults)},
		{"violations", fmt.Sprint(len(v.Violations))}, {"excused by a fault beyond the assumptions", fmt.Sprint(len(v.Excused))},
		{"time", time.Duration(r.Ended - r.Began).Round(100 * time.Millisecond).String()},
	}
	for _, f := range r.Ran {
		if f.Beyond {
			p.Beyond = append(p.Beyond, f)
		} else {
			p.Within = append(p.Within, f)
		}
	}
	for i := range r.History.Clients {
		p.Clients = append(p.Clients, swatch{i + 1, template.CSS(colour(i+1, r.History.Clients))})
	}
	return t.Execute(w, p)
}

// Headline is the verdict in a sentence.
func (r *Result) Headline() string {
	v := r.Verdict
	switch {
	case !v.Held():
		return fmt.Sprintf("violated: %d violations", len(v.Violations))
	case !r.History.Fenced && len(v.Corruption) > 0:
		return fmt.Sprintf("corruption found, as expected without fencing: %d stale writes or lost updates", len(v.Corruption))
	case !r.History.Fenced:
		return "no corruption showed, though nothing was fenced: try a longer time"
	}
	return "held: every promise was kept"
}
