package measure

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
	"github.com/redlatch/redlatch/test/bench/worker"
)

// Child makes the program a worker or links, if it was started as one, and does
// not return then. Call it first.
func Child() {
	var err error
	switch {
	case len(os.Args) != 2:
		return
	case os.Args[1] == worker.Argument:
		err = worker.Run(os.Stdin, os.Stdout)
	case os.Args[1] == server.LinkArgument:
		err = server.RunLinks(os.Stdin, os.Stdout)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run measures cells, and calls step before each batch with the planned time of
// the one before it. It returns what was measured until ctx ended.
func Run(ctx context.Context, cells []Cell, step func(done time.Duration, what string)) []*Result {
	var results []*Result
	var planned time.Duration
	for _, b := range Batches(cells) {
		if ctx.Err() != nil {
			break
		}
		what := b[0].CellID()
		if len(b) > 1 {
			what = fmt.Sprintf("%s and %d more in turns", what, len(b)-1)
		}
		step(planned, what)
		planned = 0
		for _, c := range b {
			planned += c.Duration()
		}
		results = append(results, batch(ctx, b)...)
	}
	return results
}

// entrant is a contender in a measurement. Its err ends its part in it.
type entrant struct {
	*Result
	backend server.Backend
	locker  *contender.Locker
	team    *worker.Team
	rounds  []round
	err     error
}

// round is what was measured in a time.
type round struct {
	length time.Duration
	// done is what was done: pairs, acquisitions, seconds or seconds of waiters,
	// of which the costs are.
	done    float64
	history stats.History

	server    server.Sample
	clientCPU time.Duration
	allocs    float64
}

// works are what one process does by itself in a round.
var works = map[Work]func(*entrant, context.Context) error{Keep: (*entrant).keep, Extend: (*entrant).extend, Wait: (*entrant).wait, Once: (*entrant).once, Freeze: (*entrant).freeze}

// batch measures cells together, on servers of their own.
func batch(ctx context.Context, cells []Cell) []*Result {
	backends := map[string]server.Backend{}
	defer func() {
		for _, b := range backends {
			b.Stop()
		}
	}()
	guard := slices.ContainsFunc(cells, func(c Cell) bool { return c.Guarded })
	var entrants []*entrant
	for _, c := range cells {
		c.Count = max(c.Count, 1)
		e := &entrant{Result: &Result{Cell: c}}
		entrants = append(entrants, e)
		where := fmt.Sprintf("%s/%d", c.Server, c.Nodes)
		if c.Turns {
			where = c.CellID()
		}
		if backends[where] == nil {
			if b, err := start(ctx, c, guard); err == nil {
				backends[where] = b
			} else {
				e.err = err
			}
		}
		e.backend = backends[where]
		defer e.close()
	}
	if do := works[cells[0].Work]; do != nil {
		each(ctx, entrants, func(e *entrant) error { return e.open(ctx) })
		inTurns(ctx, entrants, func(e *entrant) error { return do(e, ctx) })
	} else {
		contend(ctx, entrants)
	}
	var results []*Result
	for _, e := range entrants {
		if e.err == nil {
			e.err = ctx.Err()
		}
		if e.err == nil {
			e.err = e.sum()
		}
		if e.err != nil {
			e.Failed = e.err.Error()
		}
		results = append(results, e.Result)
	}
	return results
}

func start(ctx context.Context, c Cell, guard bool) (server.Backend, error) {
	b, err := server.Start(ctx, c.Server, c.Nodes, c.Network)
	if err != nil {
		return nil, err
	}
	if err := contender.Prepare(ctx, c.Server, b.Addresses(), guard); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

func (e *entrant) close() {
	if e.locker != nil {
		e.locker.Close()
	}
	if e.team != nil {
		e.team.Stop()
	}
}

// open connects the entrant, and takes and releases a lock once.
func (e *entrant) open(ctx context.Context) (err error) {
	if e.locker, err = e.Open(ctx, e.backend.Addresses()); err == nil {
		err = worker.Insist(ctx, e.locker, newName())
	}
	return err
}

// each does something with one entrant after the other.
func each(ctx context.Context, entrants []*entrant, do func(e *entrant) error) {
	for _, e := range entrants {
		if e.err == nil && ctx.Err() == nil {
			e.err = do(e)
		}
	}
}

// counted does something, and counts what it costs servers and clients.
func (e *entrant) counted(do func() error) (round, error) {
	cpu := clock.OfSelf
	if e.team != nil {
		cpu = e.team.CPU
	}
	var before, after runtime.MemStats
	first, err := e.backend.Sample()
	if err != nil {
		return round{}, err
	}
	runtime.ReadMemStats(&before)
	used, began := cpu(), time.Now()
	if err := do(); err != nil {
		return round{}, err
	}
	r := round{length: time.Since(began), clientCPU: cpu() - used}
	runtime.ReadMemStats(&after)
	r.allocs = float64(after.Mallocs - before.Mallocs)
	if e.Work == Inside {
		time.Sleep(late)
	}
	last, err := e.backend.Sample()
	r.server = last.Sub(first)
	return r, err
}

// sleep sleeps until a moment of the shared clock, or until ctx ends.
func sleep(ctx context.Context, until int64) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(clock.Until(until)):
		return nil
	}
}

var names atomic.Int64

// newName returns a name that no lock had before.
func newName() string { return fmt.Sprintf("bench/%06d", names.Add(1)) }

// sum sums up the rounds. It returns an error if two contenders had the lock at
// once.
func (e *entrant) sum() error {
	var done, sent, micros, handed, writes float64
	var client, server time.Duration
	var pairs, waits, holds, handOvers []time.Duration
	shares, overlaps, first := make([]int, e.Count), 0, ""
	for _, r := range e.rounds {
		h, seconds := r.history, r.length.Seconds()
		over := h.HandOvers()
		e.Rates = append(e.Rates, r.done/seconds)
		e.HandOverRates = append(e.HandOverRates, float64(len(over))/seconds)
		pairs, handOvers = append(pairs, h.Pairs()...), append(handOvers, over...)
		waits, holds = append(waits, h.Waits()...), append(holds, h.Held()...)
		// A contender is served well if it is over all rounds.
		for i, n := range h.Shares() {
			shares[i] += n
		}
		if n, text := h.Overlaps(); n > 0 && !e.own() {
			overlaps, first = overlaps+n, cmp.Or(first, text)
		}
		done, handed = done+r.done, handed+float64(len(over))
		sent, micros = sent+float64(e.Sent(r.server.Commands)), micros+float64(e.Sent(r.server.Micros))
		client, server = client+r.clientCPU, server+r.server.CPU
		writes += float64(r.server.Writes)
		e.Allocs += r.allocs
	}
	e.Pair, e.Wait = stats.Summarize(pairs), stats.Summarize(waits)
	e.Hold, e.HandOver = stats.Summarize(holds), stats.Summarize(handOvers)
	e.Jain = stats.Jain(shares)
	for _, n := range shares {
		if n == 0 {
			e.Never++
		}
	}
	if done > 0 {
		e.Commands, e.Writes, e.Allocs = sent/done, writes/done, e.Allocs/done
		e.ClientCPU, e.ServerCPU = time.Duration(float64(client)/done), time.Duration(float64(server)/done)
		e.OnServer = time.Duration(1000 * micros / done)
	}
	if handed > 0 {
		e.PerHandOver = sent / handed
	}
	if overlaps > 0 {
		return fmt.Errorf("EXCLUSION BROKEN %d times; first: %s", overlaps, first)
	}
	return nil
}
