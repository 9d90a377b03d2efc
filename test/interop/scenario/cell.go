//go:build unix

package scenario

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/internal/test/servertest"

	"github.com/redlatch/redlatch/test/interop/foreign"
)

// Verdict is how a scenario ended.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"    // as it should be
	Remark  Verdict = "remark"   // nothing is broken, and there is something to know
	Breaks  Verdict = "breaks"   // the foreign client breaks the rule
	OurFall Verdict = "redlatch" // redlatch does
)

// Cell is what one scenario found.
type Cell struct {
	Verdict Verdict
	Text    string
}

// Scenario is one thing that is tried.
type Scenario struct {
	Name string
	// Head is what it is called above its column.
	Head string
	play func(*Stage) Cell
}

// All are the scenarios, in the order of the columns.
var All = []Scenario{
	{"excludes", "excludes redlatch", excludes},
	{"excluded", "is excluded", excluded},
	{"death", "killed", death},
	{"late release", "its late release", lateRelease},
	{"late extension", "its late extension", lateExtension},
	{"our loss", "our late release and extension", ourLoss},
	{"contention", "contention", contention},
}

// Row is what was found of one client on one number of servers.
type Row struct {
	Client  *foreign.Client
	Nodes   int
	Version string
	Cells   map[string]Cell
	// Err is why the client could not be run at all.
	Err error
}

// Part is what makes a Row: a client on a number of servers.
type Part struct {
	Client *foreign.Client
	Nodes  int
	// Only are the scenarios to play. Defaults to all.
	Only []string
}

// PlayAll plays parts, so many at a time: they mostly wait. done is told after
// each scenario.
func PlayAll(parts []Part, at int, done func(p Part, scenario string)) []*Row {
	rows := make([]*Row, len(parts))
	places := make(chan struct{}, at)
	var all sync.WaitGroup
	for i, p := range parts {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			rows[i] = play(p, func(name string) {
				if done != nil {
					done(p, name)
				}
			})
		})
	}
	all.Wait()
	return rows
}

func play(p Part, done func(scenario string)) (row *Row) {
	row = &Row{Client: p.Client, Nodes: p.Nodes, Cells: map[string]Cell{}}
	t := &servertest.Outside{}
	defer t.End()
	defer func() {
		if why := recover(); why != nil {
			row.Err = fmt.Errorf("the stage broke down: %v", why)
		}
	}()
	var s *Stage
	if s, row.Err = newStage(t, p); row.Err != nil {
		return row
	}
	row.Version = s.it.Version
	for i, x := range All {
		if len(p.Only) == 0 || slices.Contains(p.Only, x.Name) {
			s.name = fmt.Sprintf("job-%d", i)
			row.Cells[x.Name] = s.run(x)
			done(x.Name)
		}
	}
	return row
}

// run plays one scenario, and turns a rule that was broken into its verdict.
func (s *Stage) run(x Scenario) (cell Cell) {
	defer func() {
		why := recover()
		if why == nil {
			return
		}
		broken, ok := why.(failure)
		switch {
		case !ok:
			panic(why)
		case broken.ours:
			cell = Cell{OurFall, broken.text}
		default:
			cell = Cell{Breaks, broken.text}
		}
		// What the foreign client still holds must not reach into the next.
		s.it.Thaw()
		s.it.Kill()
		if p, err := s.process(); err == nil {
			s.it = p
		}
	}()
	return x.play(s)
}

// Unexpected returns what broke a rule, of the client or of redlatch.
func (r *Row) Unexpected() []string {
	if r.Err != nil {
		return []string{fmt.Sprintf("%s: %v", r.Client.Name, r.Err)}
	}
	var all []string
	for _, x := range All {
		cell := r.Cells[x.Name]
		where := fmt.Sprintf("%s %s, %d servers, %s: ", r.Client.Name, r.Version, r.Nodes, x.Name)
		switch cell.Verdict {
		case OurFall:
			all = append(all, where+"redlatch "+cell.Text)
		case Breaks:
			all = append(all, where+cell.Text)
		}
	}
	return all
}

func yes(remarks ...string) Cell {
	remarks = slices.DeleteFunc(remarks, func(s string) bool { return s == "" })
	if len(remarks) == 0 {
		return Cell{Holds, "yes"}
	}
	return Cell{Remark, "yes; " + strings.Join(remarks, "; ")}
}
