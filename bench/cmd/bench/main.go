// Bench measures redlatch beside other locks, on real servers which it starts
// itself, and writes tables, plots and a file of all numbers.
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

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/progress"
	"github.com/redlatch/redlatch/bench/report"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/bench/worker"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == worker.Argument {
		if err := worker.Run(os.Stdin, os.Stdout); err != nil {
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

// home is where the whole bench's results belong, seen from this module.
const home = "../docs/testing/bench"

type flags struct {
	quick, list     bool
	only, cell, out string
}

func run(ctx context.Context, args []string) error {
	var f flags
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.BoolVar(&f.quick, "quick", false, "a smoke run of about a minute and a half, with fewer cells and short times")
	set.BoolVar(&f.list, "list", false, "list the cells, and run nothing")
	set.StringVar(&f.only, "only", "", "run the cells whose id this regular `expression` matches, like 'contended/16/.*redlatch$'")
	set.StringVar(&f.cell, "cell", "", "run the one cell with this `id`, like contended/16/1ms/5/redlatch")
	set.StringVar(&f.out, "out", "", "`folder` to write README.md, results.json and plots to; the whole bench defaults to "+home+", and a part of it to standard output")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	settings := cell.Full()
	if !f.quick && f.only == "" && f.cell == "" && f.out == "" {
		f.out = home
	}
	if f.quick {
		settings = cell.Quick()
	}
	cells, err := choose(settings, f)
	if err != nil {
		return err
	}
	if f.list {
		for _, c := range cells {
			fmt.Println(c.ID())
		}
		return nil
	}
	return bench(ctx, settings, cells, f)
}

// choose returns the cells that the flags ask for.
func choose(s cell.Settings, f flags) ([]cell.Cell, error) {
	if f.cell != "" {
		c, err := cell.Parse(f.cell)
		if err != nil {
			return nil, err
		}
		_, err = system.Find(c.System)
		return []cell.Cell{c}, err
	}
	only, err := regexp.Compile(f.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var cells []cell.Cell
	for _, c := range cell.Plan(s, system.All()) {
		if only.MatchString(c.ID()) {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("-only %q matches no cell; -list shows them", f.only)
	}
	return cells, nil
}

func bench(ctx context.Context, settings cell.Settings, cells []cell.Cell, f flags) error {
	if server.EtcdVersion() == "" {
		fmt.Fprintln(os.Stderr, "bench: there is no etcd here, its cells will fail (make deps installs it)")
	}
	var planned time.Duration
	for _, c := range cells {
		planned += settings.Duration(c)
	}
	began, machine := time.Now(), report.ThisMachine()
	bar := progress.New(os.Stderr, planned)
	r := &measure.Runner{Settings: settings, Progress: bar}
	results, err := r.Run(ctx, cells)
	bar.Close()
	if ctx.Err() != nil {
		return errors.New("interrupted; servers and workers are stopped, and nothing is written")
	}
	if err != nil {
		return err
	}
	all := &report.Report{
		Machine: machine, Settings: settings, Took: time.Since(began).Round(time.Second).String(),
		RoundTrips: r.RoundTrips, Results: results,
	}
	all.Goals = all.CheckGoals()
	if f.out == "" {
		fmt.Print(all.Markdown(false))
	} else if err := all.Write(f.out); err != nil {
		return err
	} else {
		fmt.Print(all.GoalTable())
		fmt.Fprintf(os.Stderr, "written to %s, after %s\n", f.out, all.Took)
	}
	return failures(results)
}

// failures is an error if a cell has no valid result, so that a script that
// runs the bench learns of it.
func failures(results []measure.Result) error {
	var failed []string
	for _, r := range results {
		if r.Failed != "" {
			failed = append(failed, fmt.Sprintf("%s: %s", r.ID, r.Failed))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	for _, f := range failed {
		fmt.Fprintln(os.Stderr, "FAILED", f)
	}
	return fmt.Errorf("%d of %d cells failed", len(failed), len(results))
}
