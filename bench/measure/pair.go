package measure

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
)

const (
	// batchPairs is how many pairs a contender makes in its turn, countedPairs
	// over how many its commands are counted.
	batchPairs   = 20
	countedPairs = 200
	// mostErrors is how many calls of a contender may fail before it is given
	// up.
	mostErrors = 20
)

// entrant is a contender in a measurement in turns.
type entrant struct {
	*Result
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
	for i := range results {
		e := &entrant{Result: &results[i], name: r.newName()}
		entrants = append(entrants, e)
		if e.backend, e.failed = r.backend(ctx, e.Cell); e.failed == nil {
			e.locker, e.failed = e.System.Open(ctx, e.backend.Addresses())
		}
	}
	return entrants, func() {
		for _, e := range entrants {
			if e.locker != nil {
				e.locker.Close()
			}
			if e.failed != nil {
				e.Failed = e.failed.Error()
			}
		}
	}
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
	first := results[0].Cell
	probe, err := r.probe(ctx, first)
	if err != nil {
		return err
	}
	defer probe.Close()
	stop, err := r.freeze(first)
	if err != nil {
		return err
	}
	defer stop()
	runtime.GC()
	for busy := true; busy && ctx.Err() == nil; {
		busy = false
		for _, e := range entrants {
			busy = e.turn(ctx, r.Settings.PairTime) || busy
		}
		for range batchPairs {
			if err := probe.once(); err != nil {
				return err
			}
		}
	}
	for _, e := range entrants {
		if n := len(e.times); n > 0 {
			e.Pair.ClientCPU = per(e.clientCPU, n*e.System.Pairs())
			e.Pair.Times, e.Pair.Acquire = stats.Summarize(e.times), stats.Summarize(e.acquires)
		}
		if first.Kind == cell.Pair || first.Kind == cell.Scripts {
			e.count(ctx)
		}
	}
	if first.Kind == cell.Pair && len(probe.times) > 0 {
		r.RoundTrips = append(r.RoundTrips, RoundTrip{first.Nodes, stats.Summarize(probe.times)})
	}
	return ctx.Err()
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
	e.times = append(e.times, per(time.Since(start), e.System.Pairs()))
	if d, ok := system.LastAcquire(e.locker); ok {
		e.acquires = append(e.acquires, d)
	}
	return nil
}

// turn makes a few pairs, unless the contender has had its time; it reports
// whether it had not.
func (e *entrant) turn(ctx context.Context, most time.Duration) bool {
	if e.failed != nil || e.spent >= most {
		return false
	}
	start, cpu := time.Now(), clock.OfSelf()
	for i := 0; i < batchPairs && ctx.Err() == nil; i++ {
		if err := e.pair(ctx); err != nil && ctx.Err() == nil {
			if e.Errors++; e.Errors == 1 {
				e.Error = err.Error()
			}
			if e.Errors >= mostErrors {
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
	e.clientCPU += clock.OfSelf() - cpu
	return true
}

// count measures how many commands a pair takes, and what it costs the servers.
func (e *entrant) count(ctx context.Context) {
	if e.failed != nil || ctx.Err() != nil {
		return
	}
	before, err := e.backend.Sample()
	for i := 0; i < countedPairs && err == nil; i++ {
		err = e.pair(ctx)
	}
	// A pair waits for a majority; the rest arrives a little later.
	time.Sleep(10 * time.Millisecond)
	after, err2 := e.backend.Sample()
	if err != nil || err2 != nil {
		return
	}
	d := after.Sub(before)
	pairs := countedPairs * e.System.Pairs()
	e.Pair.Commands = float64(e.System.Sent(d.Commands)) / float64(pairs)
	e.Pair.ServerCPU = per(d.CPU, pairs)
}

// probe takes raw round trips beside a measurement. The zero value takes none.
type probe struct {
	trip  *system.RoundTrip
	times []time.Duration
}

// probe connects to the servers of a cell, unless they are not Redis, or one of
// them is to be frozen.
func (r *Runner) probe(ctx context.Context, c cell.Cell) (*probe, error) {
	if c.System.Store != system.Redis || c.Kind.Frozen() {
		return &probe{}, nil
	}
	b, err := r.backend(ctx, c)
	if err != nil {
		return nil, err
	}
	trip, err := system.OpenRoundTrip(b.Addresses())
	return &probe{trip: trip}, err
}

// Close closes the connections.
func (p *probe) Close() {
	if p.trip != nil {
		p.trip.Close()
	}
}

func (p *probe) once() error {
	if p.trip == nil {
		return nil
	}
	d, err := p.trip.Once()
	p.times = append(p.times, d)
	return err
}
