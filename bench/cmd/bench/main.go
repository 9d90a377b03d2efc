// Bench measures redlatch beside other locks, on real servers which it starts
// itself, and writes tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/link"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/report"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/worker"
	"github.com/redlatch/redlatch/internal/screen"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == worker.Argument {
		if err := worker.Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == link.Argument {
		if err := link.Run(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// page and databasesPage are where the whole bench's reports belong, seen from
// this module.
const (
	page          = "../docs/testing/bench/README.md"
	databasesPage = "../docs/testing/bench/databases.md"
)

func run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := set.Bool("quick", false, "a smoke run of about a minute and a half, with fewer cells and short times")
	databases := set.Bool("databases", false, "locks in PostgreSQL and MariaDB, some 2 minutes, instead of those on Redis")
	list := set.Bool("list", false, "list the cells, and run nothing")
	only := set.String("only", "", "run the cells whose id this regular `expression` matches, like 'contended/16/.*redlatch$'")
	id := set.String("cell", "", "run the one cell with this `id`, like contended/16/1ms/5/redlatch")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	settings := cell.Full()
	if *quick {
		settings = cell.Quick()
	}
	plan := cell.Plan(settings)
	if *databases {
		plan = cell.PlanDatabases(settings)
	}
	cells, err := choose(plan, *only, *id)
	if err != nil {
		return err
	}
	if *list {
		for _, c := range cells {
			fmt.Println(c.ID())
		}
		return nil
	}
	r, err := bench(ctx, settings, cells, *databases)
	if err != nil {
		return err
	}
	text, file := r.Markdown(), page
	if *databases {
		text, file = r.Databases(), databasesPage
	}
	if *quick || *only != "" || *id != "" {
		fmt.Print(text)
	} else {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		if !*databases {
			fmt.Print(r.GoalTable())
		}
		fmt.Fprintf(os.Stderr, "written to %s, after %v\n", file, r.Took.Round(time.Second))
	}
	return failures(r.Results)
}

// choose returns the cells that the flags ask for.
func choose(plan []cell.Cell, only, id string) ([]cell.Cell, error) {
	if id != "" {
		c, err := cell.Find(id)
		return []cell.Cell{c}, err
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	cells := slices.DeleteFunc(plan, func(c cell.Cell) bool { return !match.MatchString(c.ID()) })
	if len(cells) == 0 {
		return nil, fmt.Errorf("-only %q matches no cell; -list shows them", only)
	}
	return cells, nil
}

func bench(ctx context.Context, settings cell.Settings, cells []cell.Cell, databases bool) (*report.Report, error) {
	machine := report.ThisMachine
	if databases {
		machine = report.ThisMachineForDatabases
	} else if server.Version("etcd") == "" {
		fmt.Fprintln(os.Stderr, "bench: there is no etcd here, its cells will fail (make deps installs it)")
	}
	var planned time.Duration
	for _, c := range cells {
		planned += settings.Duration(c)
	}
	began, here := time.Now(), machine()
	bar := screen.NewProgress(os.Stderr, planned.Seconds())
	r := &measure.Runner{Settings: settings, Step: func(done time.Duration, step string) { bar.Show(done.Seconds(), step) }}
	results := r.Run(ctx, cells)
	bar.End()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted; servers and workers are stopped, and nothing is written")
	}
	return &report.Report{
		Machine: here, Settings: settings, Took: time.Since(began), RoundTrips: r.RoundTrips, Results: results,
	}, nil
}

// failures is an error if a cell has no valid result, so that a script that
// runs the bench sees it.
func failures(results []measure.Result) error {
	failed := 0
	for _, r := range results {
		if r.Failed != "" {
			failed++
			fmt.Fprintf(os.Stderr, "FAILED %s: %s\n", r.ID(), r.Failed)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cells failed", failed, len(results))
	}
	return nil
}
