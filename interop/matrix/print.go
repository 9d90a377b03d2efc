//go:build unix

package matrix

import (
	"fmt"
	"io"

	"github.com/redlatch/redlatch/interop/scenario"
)

// Print writes the matrix for a terminal, and below it what is not a plain yes.
func Print(out io.Writer, rows []*scenario.Row) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(title(r)))
	}
	fmt.Fprintf(out, "%-*s  servers", wide, "client")
	for _, x := range scenario.All() {
		fmt.Fprintf(out, "  %s", x.Name)
	}
	fmt.Fprintln(out)
	for _, r := range rows {
		fmt.Fprintf(out, "%-*s  %-7d", wide, title(r), r.Nodes)
		if r.Err != nil {
			fmt.Fprintf(out, "  could not be run: %v\n", r.Err)
			continue
		}
		for _, x := range scenario.All() {
			fmt.Fprintf(out, "  %-*s", len(x.Name), word(r.Cells[x.Name]))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	for _, r := range rows {
		for _, x := range scenario.All() {
			if c := r.Cells[x.Name]; c.Verdict != scenario.Holds && c.Verdict != scenario.None && r.Err == nil {
				fmt.Fprintf(out, "%s, %d, %s: %s\n", r.Client.Name, r.Nodes, x.Name, c.Text)
			}
		}
	}
}

func title(r *scenario.Row) string { return r.Client.Name + " " + r.Version }

// word is a cell in one word.
func word(c scenario.Cell) string {
	switch c.Verdict {
	case scenario.Holds:
		return "yes"
	case scenario.Remark:
		return "yes*"
	case scenario.None:
		return "–"
	case scenario.Breaks:
		return "NO"
	case scenario.OurFall:
		return "REDLATCH"
	}
	return "?"
}
