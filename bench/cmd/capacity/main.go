// Capacity measures what locks cost the servers and the client, for docs/scale.md:
// it acquires many leases, keeps them, and releases them, on one server and on
// five, which it starts itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/internal/screen"
	"github.com/redlatch/redlatch/redis/direct"
)

func main() {
	leases := flag.String("leases", "10000,50000,100000", "how many `leases` to hold, separated by commas")
	ttl := flag.Duration("ttl", 30*time.Second, "their time to live; they are extended after a third of it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *leases, *ttl); err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list string, ttl time.Duration) error {
	var counts []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return fmt.Errorf("-leases %q: %q must be a number from 1 to 1000000", list, text)
		}
		counts = append(counts, n)
	}
	if ttl < 3*time.Second || ttl > 30*time.Second { // the default of MaxTTL
		return fmt.Errorf("-ttl %v must be from 3s to 30s", ttl)
	}
	fmt.Printf("Leases live %v. Server costs are those of each server. A read is one call of read(2) on the server: several requests may come in one.\n\n", ttl)
	fmt.Println("| servers | leases | acquire, server | extend, server | release, server | memory of a lease, server | memory of a fence after it, server | extensions a second and server | reads a second and server | server CPU while they are kept | client CPU while they are kept | heap of a lease, client |")
	fmt.Println("|" + strings.Repeat("---|", 12))
	bar := screen.NewProgress(os.Stderr, float64(2*len(counts)))
	done := 0
	for _, nodes := range []int{1, 5} {
		for _, n := range counts {
			bar.Show(float64(done), fmt.Sprintf("%d leases on %d", n, nodes))
			row, err := measure(ctx, nodes, n, ttl)
			if err != nil {
				return fmt.Errorf("%d leases on %d servers: %w", n, nodes, err)
			}
			fmt.Println(row)
			done++
		}
	}
	bar.End()
	return nil
}

// measure returns a row of the table.
func measure(ctx context.Context, nodes, leases int, ttl time.Duration) (string, error) {
	g, err := server.StartRedis(ctx, nodes)
	if err != nil {
		return "", err
	}
	defer g.Stop()
	if err := system.Prepare(ctx, g.Addresses(), true); err != nil {
		return "", err
	}
	var urls []string
	for _, a := range g.Addresses() {
		urls = append(urls, "redis://"+a)
	}
	list, err := direct.Nodes(urls...)
	if err != nil {
		return "", err
	}
	c, err := redlatch.New(list, redlatch.Options{TTL: ttl, Guard: redlatch.GuardOn})
	if err != nil {
		return "", err
	}
	defer c.Close()
	// The nodes learn which server they ask from the first grant.
	for range 3 {
		l, err := c.Lock(ctx, "first", redlatch.LockOptions{})
		if err != nil {
			return "", err
		}
		if err := l.Release(ctx); err != nil {
			return "", err
		}
	}
	heap := heapNow()
	start, err := g.Load()
	if err != nil {
		return "", err
	}
	held := make([]*redlatch.Lease, leases)
	if err := each(leases, func(i int) (err error) {
		held[i], err = c.Lock(ctx, fmt.Sprintf("orders/%08d", i), redlatch.LockOptions{})
		return err
	}); err != nil {
		return "", err
	}
	acquired, err := g.Load()
	if err != nil {
		return "", err
	}
	ofLease := (heapNow() - heap) / float64(leases)
	// The first third of the time to live is over when the first are extended.
	if err := sleep(ctx, ttl/3); err != nil {
		return "", err
	}
	before, err := g.Load()
	if err != nil {
		return "", err
	}
	cpu, began := clock.OfSelf(), time.Now()
	if err := sleep(ctx, ttl/3); err != nil {
		return "", err
	}
	kept, err := g.Load()
	if err != nil {
		return "", err
	}
	cpu = clock.OfSelf() - cpu
	seconds := time.Since(began).Seconds()
	for i, l := range held {
		if err := l.Err(); err != nil {
			return "", fmt.Errorf("lease %d was lost: %w", i, err)
		}
	}
	atEnd, err := g.Load()
	if err != nil {
		return "", err
	}
	if err := each(leases, func(i int) error { return held[i].Release(ctx) }); err != nil {
		return "", err
	}
	released, err := g.Load()
	if err != nil {
		return "", err
	}
	n := float64(nodes)
	keep := kept.Sub(before)
	return fmt.Sprintf("| %d | %d | %.1f µs | %.1f µs | %.1f µs | %.0f B | %.0f B | %.0f | %.0f | %.1f %% of a core | %.1f %% of a core | %.0f B |",
		nodes, leases, acquired.Sub(start).PerScript(), keep.PerScript(), released.Sub(atEnd).PerScript(),
		(acquired.Memory-start.Memory)/n/float64(leases), (released.Memory-start.Memory)/n/float64(leases), keep.Scripts/n/seconds, keep.Reads/n/seconds,
		100*keep.CPU.Seconds()/n/seconds, 100*cpu.Seconds()/seconds, ofLease), nil
}

// each calls f for every index, sixty-four at a time.
func each(n int, f func(i int) error) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := make(chan int)
	for range 64 {
		all.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return failed
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func heapNow() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
