//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/test/interop/foreign"
	"github.com/redlatch/redlatch/test/interop/scenario"
)

func row(name, source string, nodes int, changes map[string]scenario.Cell) *scenario.Row {
	r := &scenario.Row{Client: &foreign.Client{Name: name, Source: source, Prefix: "p:"}, Nodes: nodes, Version: "1.2", Cells: map[string]scenario.Cell{}}
	for _, x := range scenario.All {
		r.Cells[x.Name] = scenario.Cell{Verdict: scenario.Holds, Text: "yes"}
	}
	for name, cell := range changes {
		r.Cells[name] = cell
	}
	return r
}

// TestPageShowsWhatWasFound has a client that keeps all rules, one that breaks
// some, one under which redlatch fails, and one that cannot be had.
func TestPageShowsWhatWasFound(t *testing.T) {
	good := row("good", "npm", 1, nil)
	bad := row("bad", "Debian", 1, map[string]scenario.Cell{
		"excluded":       {Verdict: scenario.Breaks, Text: "takes it"},
		"late extension": {Verdict: scenario.Remark, Text: "refused; but sets a free one"},
		"late release":   {Verdict: scenario.Holds, Text: "harmless, not reported"},
	})
	ours := row("trying", "Go", 1, map[string]scenario.Cell{"excludes": {Verdict: scenario.OurFall, Text: "is not refused"}})
	gone := &scenario.Row{Client: &foreign.Client{Name: "gone", Source: "PyPI"}, Nodes: 1, Err: errors.New("the registry has it not")}
	text, err := page([]*scenario.Row{good, bad, ours, gone})
	check.Must(t, err)
	for _, want := range []string{
		"| good | 1.2 | npm | `p:NAME` | 1 | yes | yes |  |",
		"| bad | 1.2 | Debian | `p:NAME` | 1 | yes | **no** | **is excluded: takes it**. its late release: harmless, not reported. its late extension: refused; but sets a free one |",
		"| trying | 1.2 | Go | `p:NAME` | 1 | **no** | yes | **excludes redlatch: redlatch is not refused** |",
		"| gone | – | PyPI | `NAME` | 1 | not run | not run | could not be had: the registry has it not |",
		"3 of 4 clients ran",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestBrokenRulesAreRed goes through what makes a run fail.
func TestBrokenRulesAreRed(t *testing.T) {
	for what, c := range map[string]struct {
		row  *scenario.Row
		want int
	}{
		"keeps all rules":  {row("good", "Go", 1, nil), 0},
		"breaks one":       {row("bad", "Go", 1, map[string]scenario.Cell{"excluded": {Verdict: scenario.Breaks, Text: "takes it"}}), 1},
		"redlatch fails":   {row("ours", "Go", 1, map[string]scenario.Cell{"excluded": {Verdict: scenario.OurFall, Text: "is not told"}}), 1},
		"could not be run": {&scenario.Row{Client: &foreign.Client{}, Err: errors.New("gone")}, 1},
	} {
		if got := c.row.Unexpected(); len(got) != c.want {
			t.Errorf("%s: %q, want %d findings", what, got, c.want)
		}
	}
}
