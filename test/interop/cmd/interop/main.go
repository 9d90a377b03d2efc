//go:build unix

// Interop runs foreign lock clients and redlatch on the same keys, on real
// servers, and writes what was found as docs/testing/interop.md. It ends with 1 if
// a client or redlatch broke a rule, or a client could not be run.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/redis/go-redis/v9/logging"

	"github.com/redlatch/redlatch/internal/terminal"

	"github.com/redlatch/redlatch/test/interop/foreign"
	"github.com/redlatch/redlatch/test/interop/scenario"
)

func main() {
	foreign.Become(foreign.InProcess()...)
	only := flag.String("only", "", "run the clients whose name matches this regular expression, and write no page")
	at := flag.Int("at", 3, "how many clients are run at once")
	flag.Parse()
	logging.Disable() // go-redis would log each server that is killed on purpose
	if err := run(*only, *at); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pageFile is where the page is written, seen from this module.
const pageFile = "../../docs/testing/interop.md"

func run(only string, at int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	clients := slices.DeleteFunc(foreign.All(), func(c *foreign.Client) bool { return !match.MatchString(c.Name) })
	rows := play(clients, at)
	var unexpected []string
	for _, r := range rows {
		unexpected = append(unexpected, r.Unexpected()...)
	}
	if only != "" {
		fmt.Print(table(rows))
	} else {
		text, err := page(rows)
		if err == nil {
			err = os.WriteFile(pageFile, []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Printf("written: %s\n", pageFile)
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
	var parts []scenario.Part
	for _, c := range clients {
		parts = append(parts, scenario.Part{Client: c, Nodes: 1})
		if c.Five {
			parts = append(parts, scenario.Part{Client: c, Nodes: 5})
		}
	}
	bar := terminal.NewProgress(os.Stderr, float64(len(parts)*len(scenario.All)))
	defer bar.End()
	return scenario.PlayAll(parts, at, func(p scenario.Part, name string) {
		bar.Show(1, fmt.Sprintf("%s on %d: %s", p.Client.Name, p.Nodes, name))
	})
}
