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

	"github.com/redlatch/redlatch/internal/screen"
	"github.com/redlatch/redlatch/test/bench/measure"
	"github.com/redlatch/redlatch/test/bench/report"
)

// pages are what can be measured.
var pages = []report.Page{redis, databases, family, capacity}

func main() {
	measure.Child()
	list := flag.Bool("list", false, "list the cells, and run nothing")
	only := flag.String("only", "", "run the cell with this `id`, or those whose id it matches as a regular expression, to standard output")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "bench [flags] [redis|databases|family|capacity]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	page, cells, err := choose(flag.Args(), *only)
	if err == nil && *list {
		for _, c := range cells {
			fmt.Println(c.CellID())
		}
	} else if err == nil {
		if *only != "" {
			page.File = ""
		}
		err = bench(ctx, page, cells)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// choose returns the page that the arguments name, the first one by default, and
// its cells, or those of them that are asked for.
func choose(args []string, only string) (page report.Page, cells []measure.Cell, err error) {
	key := strings.Join(append(args, pages[0].Key)[:max(len(args), 1)], " ")
	i := slices.IndexFunc(pages, func(p report.Page) bool { return p.Key == key })
	if i < 0 {
		return page, nil, fmt.Errorf("no page %q", key)
	}
	page, cells = pages[i], pages[i].Cells()
	match, err := regexp.Compile("^(?:" + cmp.Or(only, ".*") + ")$")
	if err != nil {
		return page, nil, fmt.Errorf("-only: %w", err)
	}
	cells = slices.DeleteFunc(cells, func(c measure.Cell) bool { return !match.MatchString(c.CellID()) })
	if len(cells) == 0 {
		return page, nil, fmt.Errorf("-only %q matches no cell; -list shows them", only)
	}
	return page, cells, nil
}

// bench measures cells, and writes the page to its file, or to standard output. It
// returns an error if a cell has no valid result, so that a script that runs the
// bench sees it.
func bench(ctx context.Context, page report.Page, cells []measure.Cell) error {
	var planned time.Duration
	for _, c := range cells {
		planned += c.Duration()
	}
	began, machine := time.Now(), report.ThisMachine(page.Programs, page.Modules)
	bar := screen.NewProgress(os.Stderr, planned.Seconds())
	results := measure.Run(ctx, cells, func(done time.Duration, what string) { bar.Show(done.Seconds(), what) })
	bar.End()
	if ctx.Err() != nil {
		return errors.New("interrupted; servers and processes are stopped, and nothing is written")
	}
	text := page.Markdown(machine, time.Since(began), results)
	if page.File == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(page.File, []byte(text), 0o644); err != nil {
		return err
	} else {
		fmt.Printf("%swritten to %s\n", page.GoalTable(results), page.File)
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
