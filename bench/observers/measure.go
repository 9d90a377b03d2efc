package observers

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/bench/clock"
)

// Store is where locks are while they are measured.
type Store struct {
	Name  string
	Nodes func() ([]redlatch.Node, error)
	Pairs int // how many pairs are measured at a time
}

// Cost is what a pair of Lock and Release costs.
type Cost struct {
	Time, CPU     time.Duration // the lower quartiles of all turns: other work on the machine only adds
	Allocs, Bytes float64       // the mean
}

// Measure measures every variant on a store, in turns: in each turn every
// variant has its pairs, and the next begins with another one, so that what else
// the machine does meets all alike.
func Measure(ctx context.Context, s Store, turns int) ([]Cost, error) {
	clients := make([]*redlatch.Client, len(Variants))
	for i, v := range Variants {
		observer, watch, err := v.Open()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		nodes, err := s.Nodes()
		if err != nil {
			return nil, err
		}
		if clients[i], err = redlatch.New(nodes, redlatch.Options{Observer: observer}); err != nil {
			return nil, err
		}
		defer clients[i].Close()
		watch(clients[i])
		if _, err := pairs(ctx, clients[i], s.Pairs/10+10); err != nil { // until connections and caches are warm
			return nil, err
		}
	}
	all := make([][]Cost, len(Variants))
	for turn := range turns {
		for k := range clients {
			i := (turn + k) % len(clients)
			cost, err := pairs(ctx, clients[i], s.Pairs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", Variants[i].Name, err)
			}
			all[i] = append(all[i], cost)
		}
	}
	costs := make([]Cost, len(all))
	for i, of := range all {
		costs[i] = summary(of)
	}
	return costs, nil
}

// pairs returns what a pair costs, on average of n.
func pairs(ctx context.Context, c *redlatch.Client, n int) (Cost, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, began := clock.OfSelf(), time.Now()
	for i := range n {
		lease, err := c.Lock(ctx, fmt.Sprintf("orders/%d", i%100), redlatch.LockOptions{})
		if err != nil {
			return Cost{}, err
		}
		if err := lease.Release(ctx); err != nil {
			return Cost{}, err
		}
	}
	took, used := time.Since(began), clock.OfSelf()-cpu
	runtime.ReadMemStats(&after)
	return Cost{
		Time: took / time.Duration(n), CPU: used / time.Duration(n),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(n), Bytes: float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}

func summary(of []Cost) (s Cost) {
	var times, cpus []time.Duration
	for _, c := range of {
		times, cpus = append(times, c.Time), append(cpus, c.CPU)
		s.Allocs += c.Allocs / float64(len(of))
		s.Bytes += c.Bytes / float64(len(of))
	}
	slices.Sort(times)
	slices.Sort(cpus)
	s.Time, s.CPU = times[len(times)/4], cpus[len(cpus)/4]
	return s
}

// Print writes the table of a store.
func Print(w io.Writer, s Store, costs []Cost) {
	fmt.Fprintf(w, "| observer, %s | time of a pair | more | client CPU of a pair | more | allocations | bytes |\n", s.Name)
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	none := costs[0]
	for i, c := range costs {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %.0f | %.0f |\n", Variants[i].Name,
			micro(c.Time), micro(c.Time-none.Time), micro(c.CPU), micro(c.CPU-none.CPU), c.Allocs, c.Bytes)
	}
}

func micro(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/1e3) }
