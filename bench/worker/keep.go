package worker

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/system"
)

// takers is how many goroutines take the locks that are then kept.
const takers = 64

// prepareKeep takes all the locks. The measured time begins when all are held.
func prepareKeep(ctx context.Context, s *system.System, c Config) (work, error) {
	l, err := s.Open(ctx, c.Addresses)
	if err != nil {
		return nil, err
	}
	// Connections, pools and buffers are there before the first lease counts.
	if err := take(ctx, l, c.Name+"/warm", takers*4, func(h system.Held) { h.Release() }); err != nil {
		return nil, err
	}
	before := footprint()
	kept := make(chan system.Held, c.Leases)
	if err := take(ctx, l, c.Name, c.Leases, func(h system.Held) { kept <- h }); err != nil {
		return nil, err
	}
	after := footprint()
	return func(o Order) Report {
		clock.Sleep(o.End)
		runtime.KeepAlive(kept)
		return Report{
			Goroutines: after.goroutines - before.goroutines,
			Heap:       after.heap - before.heap,
			Stack:      after.stack - before.stack,
		}
	}, nil
}

// take takes n locks and hands each on.
func take(ctx context.Context, l system.Locker, prefix string, n int, then func(system.Held)) error {
	var next atomic.Int64
	var failed failures
	var all sync.WaitGroup
	for range takers {
		all.Go(func() {
			for i := next.Add(1); int(i) <= n; i = next.Add(1) {
				h, err := insist(ctx, l, fmt.Sprintf("%s/%d", prefix, i))
				if err != nil {
					failed.add(err)
					return
				}
				then(h)
			}
		})
	}
	all.Wait()
	if failed.count > 0 {
		return fmt.Errorf("taking %d locks: %s", n, failed.first)
	}
	return nil
}

type foot struct {
	goroutines  int
	heap, stack int64
}

// footprint is what the process occupies once the garbage is gone.
func footprint() foot {
	runtime.GC()
	runtime.GC() // what the first found finalizable
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return foot{runtime.NumGoroutine(), int64(m.HeapAlloc), int64(m.StackInuse)}
}
