//go:build unix

package chaos

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

// fact is a line of the table.
type fact struct{ Name, Value string }

// label names a lane of the drawing.
type label struct {
	Text string
	Y    int
}

// Page writes the history as a page of HTML that needs no other file: who held
// a lock when, which faults were injected, and the tokens.
func (r *Result) Page(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"colour": func(client int) template.CSS { return template.CSS(colour(client+1, r.History.Clients)) },
		"next":   func(n int) int { return n + 1 },
		"since": func(at int64) string {
			if at == 0 {
				return "–"
			}
			return fmt.Sprintf("%.3f s", float64(at-r.Began)/1e9)
		},
	}).Parse(pageText)
	if err != nil {
		return err
	}
	d := newDrawing(r)
	return t.Execute(w, struct {
		*Result
		Facts         []fact
		Labels        []label
		Drawing       template.HTML // everything in it was escaped
		Width, Height int
	}{r, r.facts(), d.labels, template.HTML(d.text.String()), d.width, d.y})
}

func (r *Result) facts() []fact {
	v := r.Verdict
	return []fact{
		{"acquisitions", fmt.Sprint(v.Acquisitions)}, {"by writers", fmt.Sprint(v.Writers)},
		{"by readers", fmt.Sprintf("%d, up to %d at once", v.Readers, v.MostReaders)},
		{"of a slot", fmt.Sprintf("%d, up to %d at once", v.Slots, v.MostSlots)},
		{"writers that became readers", fmt.Sprint(v.Downgrades)}, {"kept after their release", fmt.Sprint(v.Kept)}, {"attempts without a lock", fmt.Sprint(v.Missed)},
		{"writes accepted", fmt.Sprint(v.Writes)}, {"reads accepted", fmt.Sprint(v.Reads)},
		{"stale steps refused by the resource", fmt.Sprintf("%d, %d of them reads", v.Refused, v.RefusedReads)},
		{"leases that ended before their release", fmt.Sprint(v.Lost)}, {"faults", fmt.Sprint(v.Faults)},
		{"violations", fmt.Sprint(len(v.Violations))}, {"excused by a fault beyond the assumptions", fmt.Sprint(len(v.Excused))},
		{"time", time.Duration(r.Ended - r.Began).Round(100 * time.Millisecond).String()},
	}
}

// longEnough is how long a run must be for every mode to happen.
const longEnough = 20 * time.Second

// Never returns what a run was to do and did not, as a text; "" if it did all.
func (r *Result) Never() string {
	v, two := r.Verdict, 0
	if c := r.History.Clients; c >= 2 && c >= 2*r.History.Names {
		two = 2 // clients are often at the same name
	}
	var all []string
	if r.History.Calm {
		return "" // it has writers alone, and every client had a lock
	}
	for _, m := range []struct {
		count, least int
		text         string
	}{
		{v.Writers, 1, "a writer"}, {v.Readers, 1, "a reader"}, {v.Slots, 1, "a slot"}, {v.Downgrades, 1, "a downgrade"}, {v.Kept, 1, "a lock that was kept"},
		{v.MostReaders, two, "two readers at once"}, {v.MostSlots, two, "two slots at once"},
	} {
		if m.count < m.least {
			all = append(all, m.text)
		}
	}
	return strings.Join(all, ", ")
}

// Enough returns an error if something never happened, and the run was long
// enough for it: its verdict says less than it seems to.
func (r *Result) Enough() error {
	if never := r.Never(); never != "" && r.History.Healed-r.Began >= int64(longEnough) {
		return fmt.Errorf("the run is worth little: never in it was there %s", strings.ReplaceAll(never, ", ", ", nor "))
	}
	return nil
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
