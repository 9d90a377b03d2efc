// Observers measures what metrics and traces cost a pair of Lock and Release, for
// docs/metrics.md: on a node in memory, and on three servers, which it starts
// itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/bench/observers"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/memory"
	"github.com/redlatch/redlatch/redis/direct"
)

func main() {
	turns := flag.Int("turns", 201, "how many `turns` each observer has; the lower quartiles are shown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *turns); err != nil {
		fmt.Fprintln(os.Stderr, "observers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, turns int) error {
	if turns < 1 || turns > 10_000 {
		return fmt.Errorf("-turns %d must be from 1 to 10000", turns)
	}
	g, err := server.StartRedis(ctx, 3)
	if err != nil {
		return err
	}
	defer g.Stop()
	if err := system.Prepare(ctx, g.Addresses(), true); err != nil {
		return err
	}
	var urls []string
	for _, a := range g.Addresses() {
		urls = append(urls, "redis://"+a)
	}
	for i, s := range []observers.Store{
		{Name: "three Redis servers", Pairs: 100, Nodes: func() ([]redlatch.Node, error) { return direct.Nodes(urls...) }},
		{Name: "one node in memory", Pairs: 1000, Nodes: func() ([]redlatch.Node, error) { return memory.Nodes(1), nil }},
	} {
		costs, err := observers.Measure(ctx, s, turns)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if i > 0 {
			fmt.Println()
		}
		observers.Print(os.Stdout, s, costs)
	}
	return nil
}
