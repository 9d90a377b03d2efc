package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/stats"
)

// own measures many goroutines on names of their own: the contenders of a
// batch in turns, a round each, again and again.
func (r *Runner) own(ctx context.Context, results []Result) error {
	entrants, closeAll := r.open(ctx, results)
	defer closeAll()
	for _, e := range entrants {
		// The first round makes connections, and does not count.
		if e.failed == nil {
			_, e.failed = e.ownRound(ctx, r.Settings.OwnTime/4)
		}
	}
	// What all rounds of an entrant cost.
	type total struct {
		pairs     int
		sent      int64
		serverCPU time.Duration
	}
	totals := make([]total, len(entrants))
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
			start, cpu := time.Now(), clock.OfSelf()
			n, err := e.ownRound(ctx, r.Settings.OwnTime)
			took := time.Since(start)
			e.clientCPU += clock.OfSelf() - cpu
			if err != nil {
				e.failed = err
				continue
			}
			after, err := e.backend.Sample()
			if err != nil {
				return err
			}
			d := after.Sub(before)
			totals[i].sent += e.System.Sent(d.Commands)
			totals[i].serverCPU += d.CPU
			totals[i].pairs += n
			e.Own.Rounds = append(e.Own.Rounds, float64(n)/took.Seconds())
		}
	}
	for i, e := range entrants {
		t := totals[i]
		e.Own.PerSecond = stats.Median(e.Own.Rounds)
		e.Own.Costs = Costs{ratio(float64(t.sent), float64(t.pairs)), per(e.clientCPU, t.pairs), per(t.serverCPU, t.pairs)}
	}
	return ctx.Err()
}

// ownRound counts the pairs that all goroutines make in a time.
func (e *entrant) ownRound(ctx context.Context, d time.Duration) (int, error) {
	var done atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, e.Count)
	start := time.Now()
	for g := range e.Count {
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
