//go:build unix

// Interop runs foreign lock clients and redlatch on the same keys, on real
// servers, and writes what was found as docs/interop.md. It ends with 1 if
// anything was found that is not known of a client.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"

	"github.com/redlatch/redlatch/interop/foreign"
	"github.com/redlatch/redlatch/interop/ground"
	"github.com/redlatch/redlatch/interop/matrix"
	"github.com/redlatch/redlatch/interop/progress"
	"github.com/redlatch/redlatch/interop/scenario"
)

func main() {
	foreign.Become(foreign.InProcess()...)
	only := flag.String("only", "", "run the clients whose name matches this regular expression, and write no page")
	page := flag.String("page", "../docs/interop.md", "where the page is written")
	at := flag.Int("at", 3, "how many clients are played with at once")
	flag.Parse()
	if err := run(*only, *page, *at); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(only, page string, at int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	clients := slices.DeleteFunc(foreign.All(), func(c *foreign.Client) bool { return !match.MatchString(c.Name) })
	rows := play(clients, at)
	matrix.Print(os.Stdout, rows)
	if only == "" {
		if err := matrix.Write(page, rows); err != nil {
			return err
		}
		fmt.Printf("\nwritten: %s\n", page)
	}
	var unexpected []string
	for _, r := range rows {
		unexpected = append(unexpected, r.Unexpected()...)
	}
	if len(unexpected) > 0 {
		fmt.Fprintln(os.Stderr, "\nnot as it should be:")
		for _, u := range unexpected {
			fmt.Fprintln(os.Stderr, "  "+u)
		}
		return fmt.Errorf("%d findings", len(unexpected))
	}
	return nil
}

// play plays all scenarios with all clients, on one server and on five.
func play(clients []*foreign.Client, at int) []*scenario.Row {
	type part struct {
		client *foreign.Client
		nodes  int
	}
	var parts []part
	for _, c := range clients {
		parts = append(parts, part{c, 1})
		if c.Five {
			parts = append(parts, part{c, 5})
		}
	}
	rows := make([]*scenario.Row, len(parts))
	bar := progress.New(os.Stderr, len(parts)*len(scenario.All()))
	var all sync.WaitGroup
	places := make(chan struct{}, at)
	for i, p := range parts {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			g := &ground.Ground{}
			defer g.End()
			done := 0
			rows[i] = scenario.Play(g, p.client, p.nodes, func(what string) {
				done++
				bar.Step(1, fmt.Sprintf("%s, %s", p.client.Name, what))
			})
			bar.Step(len(scenario.All())-done, "")
			said := "as it should be"
			if u := rows[i].Unexpected(); len(u) > 0 {
				said = "NOT as it should be"
			}
			bar.Say("%s on %d: %s", p.client.Name, p.nodes, said)
		})
	}
	all.Wait()
	return rows
}
