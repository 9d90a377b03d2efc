// Package report makes of results what people read: pages of tables.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/server"
)

// Page is a run and its report.
type Page struct {
	// Key names it on the command line. File is where the report of a whole run
	// belongs, seen from this module; standard output if there is none.
	Key, File string
	// Text is said before the tables, if it is not empty.
	Title, Text string
	// Programs are the servers whose versions matter, with their settings;
	// Modules the libraries.
	Programs [][2]string
	Modules  []string
	Tables   []Table
	// End is what is said after the contenders' settings.
	End string
}

// Table is a table of a page: a row for each contender, in each situation, on
// each number of servers.
type Table struct {
	Heading, Text string
	Situations    []measure.Situation
	// Contenders are their keys, separated by spaces.
	Contenders string
	// Nodes defaults to 1 and 5. Contenders for another number are left out, but
	// for etcd, which comes last.
	Nodes []int
	// Columns are figures, separated by spaces; by name.
	Columns string
}

// Cells returns the cells of a table, in the order of its rows.
func (t Table) Cells() []measure.Cell {
	list, err := contender.Find(t.Contenders)
	if err != nil {
		panic(err) // found by a test
	}
	nodes := t.Nodes
	if nodes == nil {
		nodes = []int{1, 5}
	}
	var cells []measure.Cell
	for _, s := range t.Situations {
		for _, n := range slices.Compact(append(slices.Clone(nodes), server.Members)) {
			for _, c := range list {
				if c.Fixed == n || c.Fixed == 0 && slices.Contains(nodes, n) {
					cells = append(cells, measure.Cell{Situation: s, Nodes: n, Contender: c})
				}
			}
		}
	}
	return cells
}

// Cells returns the cells of a page, in the order in which they are measured.
func (p Page) Cells() []measure.Cell {
	var cells []measure.Cell
	for _, t := range p.Tables {
		cells = append(cells, t.Cells()...)
	}
	return cells
}

// Markdown returns the report of a run.
func (p Page) Markdown(m Machine, took time.Duration, results []*measure.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", p.Title)
	fmt.Fprintf(&b, "Measured in one run of %s on one machine, clients and servers sharing its cores.\n\n| | |\n|---|---|\n", took.Round(time.Second))
	for _, line := range m {
		fmt.Fprintf(&b, "| %s | %s |\n", line[0], line[1])
	}
	fmt.Fprintf(&b, "\nThe whole: `go run . %[1]s` in `test/bench/`. One cell, by the id in its row: `go run . -only ID %[1]s`.\n", p.Key)
	if p.Text != "" {
		b.WriteString("\n" + p.Text)
	}
	var all []*contender.Contender
	for _, t := range p.Tables {
		all = append(all, t.write(&b, results)...)
	}
	fmt.Fprintf(&b, "\n## The contenders and their settings\n\nLocks that have a TTL have %v, if it is not said otherwise. All contenders wait until they have the lock.\n\n", contender.TTL)
	for i, c := range all {
		if !slices.Contains(all[:i], c) {
			fmt.Fprintf(&b, "- **%s** (`%s`): %s.\n", c.Title, c.Key, c.Note)
		}
	}
	b.WriteString("\n" + p.End + "\n")
	return b.String()
}

// write writes a table with a row for each result, if there are any, and returns
// the contenders in it. A cell that failed says so instead of numbers.
func (t Table) write(b *strings.Builder, results []*measure.Result) (seen []*contender.Contender) {
	var head, rows strings.Builder
	columns := strings.Fields(t.Columns)
	for _, c := range t.Cells() {
		i := slices.IndexFunc(results, func(x *measure.Result) bool { return x.CellID() == c.CellID() })
		if i < 0 {
			continue
		}
		x := results[i]
		seen = append(seen, c.Contender)
		head.Reset()
		name := c.Title
		if x.Errors > 0 {
			name += fmt.Sprintf(" (%d calls failed)", x.Errors)
		}
		fmt.Fprintf(&rows, "| %s | %d |", name, c.Nodes)
		for i, name := range columns {
			f, known := figures[name]
			if !known {
				panic("no figure " + name) // found by a test
			}
			text := "–"
			if x.Failed == "" {
				text = f.of(x)
			} else if i == 0 {
				text = "**FAILED**"
			}
			fmt.Fprintf(&head, " %s |", f.head)
			fmt.Fprintf(&rows, " %s |", text)
		}
		fmt.Fprintf(&rows, " `%s` |\n", c.CellID())
	}
	if rows.Len() == 0 && len(t.Situations) > 0 {
		return nil
	}
	fmt.Fprintf(b, "\n%s\n", t.Heading)
	if t.Text != "" {
		fmt.Fprintf(b, "\n%s\n", t.Text)
	}
	if rows.Len() > 0 {
		fmt.Fprintf(b, "\n|  | servers |%s cell |\n|%s\n%s", head.String(), strings.Repeat("---|", len(columns)+3), rows.String())
	}
	return seen
}
