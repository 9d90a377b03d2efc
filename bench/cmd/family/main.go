// Family measures locks that several hold at once, slots and readers, beside
// the peers that have them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/bench/family"
	"github.com/redlatch/redlatch/bench/report"
)

// page is where the results belong, seen from this module.
const page = "../docs/testing/bench/family.md"

func main() {
	if len(os.Args) == 2 && os.Args[1] == family.Argument {
		if err := family.Contend(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "family:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("family", flag.ContinueOnError)
	quick := set.Bool("quick", false, "a look, with one short round, to standard output")
	only := set.String("only", "", "the rows whose id this regular `expression` matches, like '^slots/3/', to standard output")
	list := set.Bool("list", false, "list the rows, and run nothing")
	if err := set.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	times := family.Full
	if *quick {
		times = family.Quick
	}
	began := time.Now()
	results := report.Family{Machine: report.ThisMachine(), Times: times}
	step := func(what string) { fmt.Fprintln(os.Stderr, what) }
	for _, situation := range []string{family.Slots, family.Readers} {
		var peers []family.Peer
		for _, p := range family.Peers {
			if p.Situation != situation || !match.MatchString(p.ID()) {
				continue
			}
			if *list {
				fmt.Println(p.ID())
			}
			peers = append(peers, p)
		}
		if !*list {
			results.Rows = append(results.Rows, family.Measure(ctx, peers, ".", times, step)...)
		}
	}
	for _, p := range family.Peers {
		if !p.Crosses() || !match.MatchString("crossing/"+p.Key) {
			continue
		}
		if *list {
			fmt.Println("crossing/" + p.Key)
			continue
		}
		step("crossing/" + p.Key)
		results.Crossings = append(results.Crossings, family.Cross(ctx, p, ".", times.Crossings))
	}
	if *list {
		return nil
	}
	results.Took = time.Since(began)
	if ctx.Err() != nil {
		return errors.New("interrupted; servers and contenders are stopped, and nothing is written")
	}
	if *quick || *only != "" {
		fmt.Print(results.Markdown())
	} else if err := os.WriteFile(page, []byte(results.Markdown()), 0o644); err != nil {
		return err
	}
	return results.Err()
}
