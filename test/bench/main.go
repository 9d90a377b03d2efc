// Bench measures redlatch beside other locks, on real servers which it starts
// itself, and writes tables.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/terminal"
	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
)

// pages are what can be measured.
var pages = []report.Page{redis, databases, consensus, crowds, capacity}

func main() {
	measure.Child()
	list := flag.Bool("list", false, "list the cells, and run nothing")
	only := flag.String("only", "", "run the cell with this `id`, or those whose id it matches as a regular expression, to standard output")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "bench [flags] [redis|databases|consensus|crowd|capacity]: without a page, all that are in docs/testing/bench")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	plan, err := choose(flag.Args(), *only)
	for _, p := range plan {
		if !*list {
			err = errors.Join(err, p.bench(ctx, *only == ""))
			continue
		}
		for _, c := range p.cells {
			fmt.Println(c.CellID())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// planned is a page and those of its cells that are measured.
type planned struct {
	report.Page
	cells []measure.Cell
}

// choose returns the page that the arguments name, or all that have a file, with
// the cells that are asked for.
func choose(args []string, only string) (plan []planned, err error) {
	match, err := regexp.Compile("^(?:" + cmp.Or(only, ".*") + ")$")
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for _, p := range pages {
		if key := strings.Join(args, " "); key != p.Key && (key != "" || p.File == "") {
			continue
		}
		cells := slices.DeleteFunc(p.Cells(), func(c measure.Cell) bool { return !match.MatchString(c.CellID()) })
		if len(cells) > 0 {
			plan = append(plan, planned{p, cells})
		}
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("no page %q has a cell %q; -list shows them", args, only)
	}
	return plan, nil
}

// bench measures cells, and writes the page to its file, or to standard output. It
// returns an error if a cell has no valid result, so that a script that runs the
// bench sees it.
func (p planned) bench(ctx context.Context, whole bool) (err error) {
	began := time.Now()
	bar := terminal.NewProgress(os.Stderr, float64(len(measure.Batches(p.cells))))
	machine := report.ThisMachine(p.Programs, p.Modules)
	results := measure.Run(ctx, p.cells, func(what string) { bar.Show(1, what) })
	bar.End()
	if ctx.Err() != nil {
		return errors.New("interrupted; servers and processes are stopped, and nothing is written")
	}
	text := p.Markdown(machine, time.Since(began), results)
	if p.File == "" || !whole {
		fmt.Print(text)
	} else {
		err = os.WriteFile(p.File, []byte(text), 0o644)
	}
	for _, r := range results {
		if r.Errors > 0 {
			fmt.Fprintf(os.Stderr, "%s: %d calls failed, first: %s\n", r.CellID(), r.Errors, r.Error)
		}
		if r.Failed != "" {
			err = errors.Join(err, fmt.Errorf("FAILED %s: %s", r.CellID(), r.Failed))
		}
	}
	return err
}
