package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/bench/stats"
)

// own measures many goroutines on names of their own: the contenders of a
// batch in turns, a round each, again and again.
func (r *Runner) own(ctx context.Context, results []Result) error {
	entrants, closeAll := r.open(ctx, results)
	defer closeAll()
	pairs := make([]int, len(entrants))
	for i, e := range entrants {
		// The first round makes connections, and does not count.
		if e.failed == nil {
			_, e.failed = e.ownRound(ctx, r.Settings.OwnTime/4)
		}
		e.result.Own, e.clientCPU, pairs[i] = &Own{}, 0, 0
	}
	sent := make([]int64, len(entrants))
	server := make([]time.Duration, len(entrants))
	for range r.Settings.OwnRounds {
		for i, e := range entrants {
			if e.failed != nil || ctx.Err() != nil {
				continue
			}
			runtime.GC()
			before, err := e.backend.Sample()
			if err != nil {
				return err
			}
			start, cpu := time.Now(), selfCPU()
			n, err := e.ownRound(ctx, r.Settings.OwnTime)
			took := time.Since(start)
			e.clientCPU += selfCPU() - cpu
			if err != nil {
				e.failed = err
				continue
			}
			after, err := e.backend.Sample()
			if err != nil {
				return err
			}
			d := after.Sub(before)
			sent[i] += e.system.Sent(d.Commands)
			server[i] += d.CPU
			pairs[i] += n
			e.result.Own.Rounds = append(e.result.Own.Rounds, float64(n)/took.Seconds())
		}
	}
	for i, e := range entrants {
		if e.failed != nil {
			e.result.Failed = e.failed.Error()
		}
		o := e.result.Own
		o.PerSecond = stats.Median(o.Rounds)
		o.Commands = ratio(float64(sent[i]), float64(pairs[i]))
		o.ClientCPU, o.ServerCPU = per(e.clientCPU, pairs[i]), per(server[i], pairs[i])
	}
	return ctx.Err()
}

// ownRound counts the pairs that all goroutines make in a time.
func (e *entrant) ownRound(ctx context.Context, d time.Duration) (int, error) {
	var done atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, e.result.Count)
	start := time.Now()
	for g := range e.result.Count {
		name := fmt.Sprintf("%s/%d", e.name, g)
		all.Go(func() {
			for time.Since(start) < d && ctx.Err() == nil {
				held, err := e.locker.Lock(ctx, name)
				if err == nil {
					err = held.Release()
				}
				if err != nil {
					errs <- err
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return int(done.Load()), nil
	}
}
