package measure

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
)

// takers is how many goroutines take and release the locks that are kept.
const takers = 64

// keep measures what it costs to keep many locks alive, in a process that does
// nothing else.
func (e *entrant) keep(ctx context.Context) error {
	locker, err := e.Open(ctx, e.backend.Addresses)
	if err != nil {
		return err
	}
	defer locker.Close()
	// The locks of some contenders end with the context they were asked for with.
	long, end := context.WithCancel(ctx)
	defer end()
	held := make([]contender.Release, e.Count)
	take := func(prefix string) func(int) error {
		return func(i int) (err error) {
			held[i], err = locker.Lock(long, fmt.Sprintf("%s/%08d", prefix, i))
			return err
		}
	}
	release := func(i int) error { return held[i](long) }
	// Connections, pools and buffers are there before the first lock counts.
	warm := min(e.Count, takers)
	for _, do := range []func(int) error{take("warm"), release} {
		if err := all(warm, do); err != nil {
			return fmt.Errorf("the first locks: %w", err)
		}
	}
	memory := footprint()
	taken, err := e.counted(clock.OfSelf, func() error { return all(e.Count, take("orders")) })
	if err != nil {
		return fmt.Errorf("taking %d locks: %w", e.Count, err)
	}
	bytes := max(footprint()-memory, 0)
	// The first are extended when a third of the time to live is over.
	if err := clock.Wait(ctx, e.Contender.TTL()/3); err != nil {
		return err
	}
	// In another third each is extended once.
	length := max(e.For, e.Contender.TTL()/3)
	kept, err := e.counted(clock.OfSelf, func() error { return clock.Wait(ctx, length) })
	if err != nil {
		return err
	}
	// A lock that was lost is an error here: to keep the rest costs less.
	released, err := e.counted(clock.OfSelf, func() error { return all(e.Count, release) })
	if err != nil {
		return fmt.Errorf("releasing the locks: %w", err)
	}
	locks := float64(e.Count * e.Nodes)
	kept.done = kept.length.Seconds()
	e.rounds = append(e.rounds, kept)
	e.Result.Kept = Kept{
		Acquire: taken.server.PerScript(), Extend: kept.server.PerScript(), Release: released.server.PerScript(),
		Lock:   taken.server.Memory / locks,
		After:  (taken.server.Memory + kept.server.Memory + released.server.Memory) / locks,
		Client: bytes / float64(e.Count),
	}
	return nil
}

// all calls do for every number below n, some at once.
func all(n int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(takers)
	for i := range n {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

// footprint is the bytes that the process occupies once the garbage is gone.
func footprint() float64 {
	runtime.GC()
	runtime.GC() // what the first found finalizable
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
