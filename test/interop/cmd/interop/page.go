//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/redlatch/redlatch/test/interop/scenario"
)

//go:embed page.md
var words string

// page returns the text of page.md, with the tables of this run.
func page(rows []*scenario.Row) (string, error) {
	t, err := template.New("page").Parse(words)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"Ran":     ran(rows),
		"Clients": table(rows),
	})
	return b.String(), err
}

// ran counts the clients that ran. One with two settings counts once.
func ran(rows []*scenario.Row) string {
	all, gone := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		name, _, _ := strings.Cut(r.Client.Name, ",")
		all[name] = true
		if r.Err != nil {
			gone[name] = true
		}
	}
	if len(gone) > 0 {
		return fmt.Sprintf("%d of %d clients ran", len(all)-len(gone), len(all))
	}
	return fmt.Sprintf("%d clients ran", len(all))
}

// table is the table with a line for each client, whose rows, on one server and on five,
// follow each other.
func table(rows []*scenario.Row) string {
	var b strings.Builder
	b.WriteString("| client | version | from | its key for NAME | servers | excludes redlatch | is excluded | to know |\n|---|---|---|---|---|---|---|---|\n")
	for len(rows) > 0 {
		c, n, servers := rows[0].Client, 1, "1"
		if n < len(rows) && rows[n].Client == c {
			n++
		}
		of := rows[:n]
		rows = rows[n:]
		if c.Five {
			servers = "1, 5"
		}
		key := "`" + c.Prefix + "NAME`"
		if c.Setting != "" {
			key += "; " + c.Setting
		}
		if i := slices.IndexFunc(of, func(r *scenario.Row) bool { return r.Err != nil }); i >= 0 {
			fmt.Fprintf(&b, "| %s | – | %s | %s | %s | not run | not run | could not be had: %s |\n", c.Name, c.Source, key, servers, escape(of[i].Err.Error()))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Name, of[0].Version, c.Source, key, servers,
			all(of, "excludes"), all(of, "excluded", "contention"), escape(strings.Join(known(of), ". ")))
	}
	return b.String()
}

// all is yes if the scenarios held on every number of servers.
func all(rows []*scenario.Row, scenarios ...string) string {
	for _, r := range rows {
		for _, name := range scenarios {
			if v := r.Cells[name].Verdict; v == scenario.Breaks || v == scenario.OurFall {
				return "**no**"
			}
		}
	}
	return "yes"
}

// plain is what needs no words.
var plain = []string{"yes", "harmless", "harmless, reported", "refused", "never two"}

// known is what is not plain, each once, with the number of servers
// where it is not the same on both.
func known(rows []*scenario.Row) []string {
	var list []string
	for _, x := range scenario.All {
		said := map[string][]string{}
		var order []string
		for _, r := range rows {
			cell := r.Cells[x.Name]
			if cell.Verdict == scenario.Holds && slices.Contains(plain, cell.Text) {
				continue
			}
			text := x.Head + ": " + strings.TrimPrefix(cell.Text, "yes; ")
			switch cell.Verdict {
			case scenario.Breaks:
				text = "**" + x.Head + ": " + cell.Text + "**"
			case scenario.OurFall:
				text = "**" + x.Head + ": redlatch " + cell.Text + "**"
			}
			if said[text] == nil {
				order = append(order, text)
			}
			said[text] = append(said[text], fmt.Sprint(r.Nodes))
		}
		for _, text := range order {
			if len(said[text]) < len(rows) {
				text += " (on " + said[text][0] + ")"
			}
			list = append(list, text)
		}
	}
	return list
}

func escape(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
