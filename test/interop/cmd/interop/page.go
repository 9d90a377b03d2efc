//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/redlatch/redlatch/test/interop/foreign"
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

// both is a client's rows, on one server and, if it can, on five.
type both struct {
	client  *foreign.Client
	version string
	rows    []*scenario.Row
}

func byClient(rows []*scenario.Row) []*both {
	var all []*both
	for _, r := range rows {
		i := slices.IndexFunc(all, func(b *both) bool { return b.client == r.Client })
		if i < 0 {
			all = append(all, &both{client: r.Client})
			i = len(all) - 1
		}
		all[i].rows = append(all[i].rows, r)
		all[i].version = r.Version
	}
	return all
}

// table is the table with a line for each client.
func table(rows []*scenario.Row) string {
	var b strings.Builder
	b.WriteString("| client | version | from | its key for NAME | servers | excludes redlatch | is excluded | to know |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range byClient(rows) {
		from, servers := c.client.Source, "1"
		if c.client.Five {
			servers = "1, 5"
		}
		key := "`" + c.client.Prefix + "NAME`"
		if c.client.Setting != "" {
			key += "; " + c.client.Setting
		}
		if err := c.failed(); err != nil {
			fmt.Fprintf(&b, "| %s | – | %s | %s | %s | not run | not run | could not be had: %s |\n", c.client.Name, from, key, servers, escape(err.Error()))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.client.Name, c.version, from, key, servers,
			c.all("excludes"), c.all("excluded", "contention"), escape(strings.Join(c.known(), ". ")))
	}
	return b.String()
}

func (c *both) failed() error {
	for _, r := range c.rows {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// all is yes if the scenarios held on every number of servers.
func (c *both) all(scenarios ...string) string {
	for _, r := range c.rows {
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
func (c *both) known() []string {
	var list []string
	for _, x := range scenario.All() {
		said := map[string][]string{}
		var order []string
		for _, r := range c.rows {
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
			if len(said[text]) < len(c.rows) {
				text += " (on " + said[text][0] + ")"
			}
			list = append(list, text)
		}
	}
	return list
}

func escape(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
