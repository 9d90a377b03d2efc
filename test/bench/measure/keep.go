package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
)

// takers is how many goroutines take and release the locks that are kept.
const takers = 64

// keep measures what it costs to keep many locks alive, in a process that does
// nothing else.
func (e *entrant) keep(ctx context.Context) error {
	// The locks of some contenders end with the context they were asked for with.
	long, end := context.WithCancel(ctx)
	defer end()
	held := make([]contender.Release, e.Count)
	take := func(prefix string) func(int) error {
		return func(i int) (err error) {
			held[i], err = e.locker.Lock(long, fmt.Sprintf("%s/%08d", prefix, i))
			return err
		}
	}
	release := func(i int) error { return held[i](long) }
	// Connections, pools and buffers are there before the first lock counts.
	warm := min(e.Count, takers)
	if err := errors.Join(all(warm, take("warm")), all(warm, release)); err != nil {
		return err
	}
	goroutines, memory := footprint()
	taken, err := e.counted(func() error { return all(e.Count, take("orders")) })
	if err != nil {
		return fmt.Errorf("taking %d locks: %w", e.Count, err)
	}
	more, bytes := footprint()
	more, bytes = more-goroutines, max(bytes-memory, 0)
	// The first are extended when a third of the time to live is over.
	if err := sleep(ctx, clock.Now()+int64(e.Contender.TTL()/3)); err != nil {
		return err
	}
	// In another third each is extended once.
	length := max(e.For, e.Contender.TTL()/3)
	kept, err := e.counted(func() error { return sleep(ctx, clock.Now()+int64(length)) })
	if err != nil {
		return err
	}
	// A lock that was lost is an error here: to keep the rest costs less.
	released, err := e.counted(func() error { return all(e.Count, release) })
	if err != nil {
		return fmt.Errorf("releasing the locks: %w", err)
	}
	seconds, locks := kept.length.Seconds(), float64(e.Count*e.Nodes)
	kept.done = seconds
	e.rounds = append(e.rounds, kept)
	e.Result.Kept = Kept{
		Acquire: taken.server.PerScript(), Extend: kept.server.PerScript(), Release: released.server.PerScript(),
		Lock:       taken.server.Memory / locks,
		After:      (taken.server.Memory + kept.server.Memory + released.server.Memory) / locks,
		Reads:      kept.server.Reads / float64(e.Nodes) / seconds,
		Goroutines: more, Client: bytes / float64(e.Count),
	}
	return nil
}

// all calls do for every number below n, some at once.
func all(n int, do func(i int) error) error {
	var g errgroup.Group
	var next atomic.Int64
	for range min(n, takers) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := do(i); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// footprint is what the process occupies once the garbage is gone.
func footprint() (goroutines, bytes float64) {
	runtime.GC()
	runtime.GC() // what the first found finalizable
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(runtime.NumGoroutine()), float64(m.HeapAlloc + m.StackInuse)
}
