// Package report makes of results what people read: pages of tables, and a check
// of the bounds.
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
	Key, File   string
	Title, Text string
	// Programs are the servers whose versions matter, with their settings;
	// Modules the libraries.
	Programs [][2]string
	Modules  []string
	Bounds   []Bound
	Charts   []Chart // if any, in Picture, beside the page
	Picture  string
	Tables   []Table
	// End is what is said after the contenders' settings.
	End string
}

// Table is a table of a page: a row for each contender, in each situation, on
// each number of servers.
type Table struct {
	Heading, Text string
	Situations    []measure.Situation
	// Contenders are their keys, separated by spaces. Base is the one that the
	// others are compared with.
	Contenders, Base string
	// Nodes defaults to 1 and 5. Contenders for another number are left out, but
	// for etcd, which comes last.
	Nodes []int
	// Columns are figures, separated by spaces; see column.
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
	fmt.Fprintf(&b, "Measured in one run of %s on one machine, clients and servers sharing its cores. %s\n\n| | |\n|---|---|\n", took.Round(time.Second), p.Text)
	for _, line := range m {
		fmt.Fprintf(&b, "| %s | %s |\n", line[0], line[1])
	}
	fmt.Fprintf(&b, "\nThe whole: `go run . %[1]s` in `test/bench/`. One cell, by the id in its row: `go run . -only ID %[1]s`.\n", p.Key)
	if len(p.Bounds) > 0 {
		b.WriteString("\n## Targets\n\nWhat redlatch must reach, and what it aims at, each beside the best peer in this run. Unless a row names an option, all options have their defaults: tokens, guard, order and the end of a lease before its deadline are on in every row.\n\n" +
			p.BoundTable(results))
	}
	if p.Picture != "" {
		fmt.Fprintf(&b, "\n![The figures of some tables as bars](%s)\n", p.Picture)
	}
	failures(&b, results)
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
	result := func(id string) *measure.Result {
		if i := slices.IndexFunc(results, func(x *measure.Result) bool { return x.CellID() == id }); i >= 0 {
			return results[i]
		}
		return nil
	}
	var head, rows strings.Builder
	columns := strings.Fields(t.Columns)
	for _, c := range t.Cells() {
		x, base := result(c.CellID()), result(fmt.Sprintf("%s/%d/%s", c.ID, c.Nodes, t.Base))
		if x == nil {
			continue
		}
		seen = append(seen, c.Contender)
		head.Reset()
		name := c.Title
		if x.Errors > 0 {
			name += fmt.Sprintf(" (%d calls failed)", x.Errors)
		}
		fmt.Fprintf(&rows, "| %s | %d |", name, c.Nodes)
		for i, name := range columns {
			title, text := column(name, x, base)
			if x.Failed != "" && i == 0 {
				text = "**FAILED**"
			}
			fmt.Fprintf(&head, " %s |", title)
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

// failures lists the cells that have no valid result, and those in which calls
// failed.
func failures(b *strings.Builder, results []*measure.Result) {
	var list strings.Builder
	for _, x := range results {
		if x.Failed != "" {
			fmt.Fprintf(&list, "- **`%s`: %s**\n", x.CellID(), line(x.Failed))
		}
		if x.Errors > 0 {
			fmt.Fprintf(&list, "- `%s`: %d calls; the contender asked again, and its wait went on. The first: %s\n", x.CellID(), x.Errors, line(x.Error))
		}
	}
	if list.Len() > 0 {
		b.WriteString("\n## What failed\n\n" + list.String())
	}
}

// line is the beginning of a text, in one line.
func line(text string) string {
	short := []rune(strings.Join(strings.Fields(text), " "))
	return string(short[:min(len(short), 300)])
}
