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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/internal/screen"
	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
)

// pages are what can be measured.
var pages = []report.Page{redis, databases, consensus, capacity}

func main() {
	measure.Child()
	list := flag.Bool("list", false, "list the cells, and run nothing")
	only := flag.String("only", "", "run the cell with this `id`, or those whose id it matches as a regular expression, to standard output")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "bench [flags] [redis|databases|consensus|capacity]: without a page, all that are in docs/testing/bench")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	plan, err := choose(flag.Args(), *only)
	for _, p := range plan {
		if *list {
			for _, c := range p.cells {
				fmt.Println(c.CellID())
			}
			continue
		}
		err = errors.Join(err, p.bench(ctx, *only == ""))
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
	key, known := strings.Join(args, " "), false
	for _, p := range pages {
		if key != p.Key && (key != "" || p.File == "") {
			continue
		}
		known = true
		cells := slices.DeleteFunc(p.Cells(), func(c measure.Cell) bool { return !match.MatchString(c.CellID()) })
		if len(cells) > 0 {
			plan = append(plan, planned{p, cells})
		}
	}
	if !known {
		return nil, fmt.Errorf("no page %q", key)
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("-only %q matches no cell; -list shows them", only)
	}
	return plan, nil
}

// bench measures cells, and writes the page to its file, or to standard output. It
// returns an error if a cell has no valid result, so that a script that runs the
// bench sees it.
func (p planned) bench(ctx context.Context, whole bool) error {
	var length time.Duration
	for _, c := range p.cells {
		length += c.Duration()
	}
	began, machine := time.Now(), report.ThisMachine(p.Programs, p.Modules)
	bar := screen.NewProgress(os.Stderr, length.Seconds())
	results := measure.Run(ctx, p.cells, func(done time.Duration, what string) { bar.Show(done.Seconds(), what) })
	bar.End()
	if ctx.Err() != nil {
		return errors.New("interrupted; servers and processes are stopped, and nothing is written")
	}
	text := p.Markdown(machine, time.Since(began), results)
	if p.File == "" || !whole {
		fmt.Print(text)
	} else if err := p.write(text, results); err != nil {
		return err
	}
	failed := 0
	for _, r := range results {
		if r.Failed != "" {
			failed++
			fmt.Fprintf(os.Stderr, "FAILED %s: %s\n", r.CellID(), r.Failed)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cells failed", failed, len(results))
	}
	return nil
}

// write writes a page and its picture.
func (p planned) write(text string, results []*measure.Result) error {
	err := os.WriteFile(p.File, []byte(text), 0o644)
	if err == nil && p.Picture != "" {
		err = os.WriteFile(filepath.Join(filepath.Dir(p.File), p.Picture), []byte(p.SVG(results)), 0o644)
	}
	if err == nil {
		fmt.Printf("%swritten to %s\n", p.BoundTable(results), p.File)
	}
	return err
}
