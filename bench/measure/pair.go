package measure

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
)

// batchPairs is how many pairs a contender makes before it is the next one's
// turn; countedPairs how many its commands are counted over.
const (
	batchPairs   = 20
	countedPairs = 200
)

// mostErrors is how many calls of a contender may fail before it is given up.
const mostErrors = 20

// entrant is a contender in a measurement in turns.
type entrant struct {
	result  *Result
	system  *system.System
	backend server.Backend
	locker  system.Locker
	name    string

	times, acquires []time.Duration
	spent           time.Duration
	clientCPU       time.Duration
	failed          error
}

// open connects the contenders of a batch.
func (r *Runner) open(ctx context.Context, results []Result) (entrants []*entrant, closeAll func()) {
	closeAll = func() {
		for _, e := range entrants {
			if e.locker != nil {
				e.locker.Close()
			}
		}
	}
	for i := range results {
		e := &entrant{result: &results[i], name: r.newName()}
		entrants = append(entrants, e)
		if e.system, e.failed = system.Find(results[i].System); e.failed != nil {
			continue
		}
		if e.backend, e.failed = r.backend(ctx, e.system, results[i].Nodes); e.failed != nil {
			continue
		}
		e.locker, e.failed = e.system.Open(ctx, e.backend.Addresses())
	}
	return entrants, closeAll
}

// pair locks and releases once.
func (e *entrant) pair(ctx context.Context) error {
	start := time.Now()
	held, err := e.locker.Lock(ctx, e.name)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := held.Release(); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	e.times = append(e.times, time.Since(start))
	if d, ok := system.LastAcquire(e.locker); ok {
		e.acquires = append(e.acquires, d)
	}
	return nil
}

// pairs measures all contenders of a batch in turns: a few pairs each, again
// and again.
func (r *Runner) pairs(ctx context.Context, results []Result) error {
	entrants, closeAll := r.open(ctx, results)
	defer closeAll()
	for _, e := range entrants {
		// Connections, scripts and pools come first.
		for i := 0; i < batchPairs && e.failed == nil && ctx.Err() == nil; i++ {
			e.failed = e.pair(ctx)
		}
		e.times, e.acquires = nil, nil
	}
	probe, err := r.probe(ctx, results[0])
	if err != nil {
		return err
	}
	defer probe.close()
	if results[0].Kind == cell.FrozenPair {
		frozen := r.redis[results[0].Nodes]
		if frozen == nil {
			return fmt.Errorf("there is no server to freeze")
		}
		if err := frozen.Freeze(); err != nil {
			return err
		}
		defer r.stopServers() // what the frozen one missed is nobody's business
	}
	runtime.GC()
	for busy := true; busy && ctx.Err() == nil; {
		busy = false
		for _, e := range entrants {
			busy = e.turn(ctx, r.Settings.PairTime) || busy
		}
		if err := probe.turn(); err != nil {
			return err
		}
	}
	if results[0].Kind == cell.Pair {
		for _, e := range entrants {
			e.count(ctx)
		}
		if times := probe.summary(); times != nil {
			r.RoundTrips = append(r.RoundTrips, RoundTrip{Nodes: results[0].Nodes, Times: *times})
		}
	}
	for _, e := range entrants {
		e.finish()
	}
	return ctx.Err()
}

// turn makes a few pairs, unless the contender has had its time; it reports
// whether it had not.
func (e *entrant) turn(ctx context.Context, most time.Duration) bool {
	if e.failed != nil || e.spent >= most {
		return false
	}
	start, cpu := time.Now(), selfCPU()
	for i := 0; i < batchPairs && ctx.Err() == nil; i++ {
		if err := e.pair(ctx); err != nil && ctx.Err() == nil {
			if e.result.Errors++; e.result.Errors == 1 {
				e.result.Error = err.Error()
			}
			if e.result.Errors >= mostErrors {
				e.failed = err
				return false
			}
		}
		// A contender that a frozen server holds up must not hold up all
		// others too.
		if time.Since(start) > most/4 {
			break
		}
	}
	e.spent += time.Since(start)
	e.clientCPU += selfCPU() - cpu
	return true
}

// count finds out how many commands a pair takes, and what it costs the
// servers.
func (e *entrant) count(ctx context.Context) {
	if e.failed != nil || ctx.Err() != nil {
		return
	}
	measured := len(e.times)
	before, err := e.backend.Sample()
	for i := 0; i < countedPairs && err == nil; i++ {
		err = e.pair(ctx)
	}
	// A majority is what a pair waits for; the rest is on its way.
	time.Sleep(10 * time.Millisecond)
	after, err2 := e.backend.Sample()
	e.times = e.times[:measured]
	if err != nil || err2 != nil {
		return
	}
	d := after.Sub(before)
	e.costs().Commands = float64(e.system.Sent(d.Commands)) / countedPairs
	e.costs().ServerCPU = d.CPU / countedPairs
}

func (e *entrant) costs() *Costs {
	if e.result.Pair == nil {
		e.result.Pair = &Pair{}
	}
	return &e.result.Pair.Costs
}

func (e *entrant) finish() {
	if e.failed != nil {
		e.result.Failed = e.failed.Error()
	}
	if len(e.times) == 0 {
		return
	}
	e.costs().ClientCPU = per(e.clientCPU, len(e.times))
	e.result.Pair.Times = stats.Summarize(e.times)
	if len(e.acquires) > 0 {
		s := stats.Summarize(e.acquires)
		e.result.Pair.Acquire = &s
	}
}
