package measure

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
	"github.com/redlatch/redlatch/test/bench/worker"
)

// Child makes the program a worker, if it was started as one, and does not return
// then. Call it first.
func Child() {
	if len(os.Args) != 2 || os.Args[1] != worker.Argument {
		return
	}
	if err := worker.Run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run measures cells, and calls step before each batch. It returns what was
// measured until ctx ended.
func Run(ctx context.Context, cells []Cell, step func(what string)) []*Result {
	var results []*Result
	for _, b := range Batches(cells) {
		if ctx.Err() != nil {
			break
		}
		what := b[0].CellID()
		if len(b) > 1 {
			what = fmt.Sprintf("%s and %d more in turns", what, len(b)-1)
		}
		step(what)
		results = append(results, batch(ctx, b)...)
	}
	for _, r := range results {
		for _, base := range results {
			if base.Native && base.Server == r.Server && base.ID == r.ID && base.Nodes == r.Nodes {
				r.Base = base
			}
		}
	}
	return results
}

// entrant is a contender in a measurement. Its err ends its part in it.
type entrant struct {
	*Result
	backend *server.Backend
	team    *worker.Team
	single  *worker.Team // with one processor, or nil
	rounds  []round
	err     error
}

// round is what was measured in a time.
type round struct {
	length time.Duration
	// done is what was done: pairs, acquisitions or seconds, of which the costs are.
	done    float64
	history stats.History

	server    server.Sample
	clientCPU time.Duration
}

// batch measures cells together, on servers of their own.
func batch(ctx context.Context, cells []Cell) []*Result {
	backends := map[string]*server.Backend{}
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
	switch cells[0].Work {
	case Keep:
		each(ctx, entrants, func(e *entrant) error { return e.keep(ctx) })
	case Runs:
		each(ctx, entrants, func(e *entrant) error { return e.runs(ctx) })
	default:
		contend(ctx, entrants)
	}
	var results []*Result
	for _, e := range entrants {
		e.err = cmp.Or(e.err, ctx.Err())
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

func start(ctx context.Context, c Cell, guard bool) (*server.Backend, error) {
	b, err := server.Start(ctx, c.Server, c.Nodes, c.Network)
	if err != nil {
		return nil, err
	}
	if err := contender.Prepare(ctx, c.Server, b.Addresses, guard); err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

func (e *entrant) close() {
	for _, t := range []*worker.Team{e.team, e.single} {
		if t != nil {
			t.Stop()
		}
	}
}

// each does something with one entrant after the other.
func each(ctx context.Context, entrants []*entrant, do func(e *entrant) error) {
	for _, e := range entrants {
		if e.err == nil && ctx.Err() == nil {
			e.err = do(e)
		}
	}
}

// counted does something, and counts what it costs servers and clients, whose CPU
// time cpu says.
func (e *entrant) counted(cpu func() time.Duration, do func() error) (round, error) {
	first, err := e.backend.Sample()
	if err != nil {
		return round{}, err
	}
	used, began := cpu(), time.Now()
	if err := do(); err != nil {
		return round{}, err
	}
	r := round{length: time.Since(began), clientCPU: cpu() - used}
	last, err := e.backend.Sample()
	r.server = last.Sub(first)
	return r, err
}

var names atomic.Int64

// newName returns a name that no lock had before.
func newName() string { return fmt.Sprintf("bench/%06d", names.Add(1)) }

// sum sums up the rounds. It returns an error if two contenders had the lock at
// once.
func (e *entrant) sum() error {
	var done, sent, handed, writes float64
	var client, server time.Duration
	var pairs, waits, handOvers []time.Duration
	shares, overlaps := make([]int, e.Count), []exclusion.Fault(nil)
	for _, r := range e.rounds {
		h, seconds := r.history, r.length.Seconds()
		over := h.HandOvers()
		e.Rates = append(e.Rates, r.done/seconds)
		e.HandOverRates = append(e.HandOverRates, float64(len(over))/seconds)
		pairs, handOvers = append(pairs, h.Pairs()...), append(handOvers, over...)
		waits = append(waits, h.Waits()...)
		// A contender is served well if it is over all rounds.
		for i, n := range h.Shares() {
			shares[i] += n
		}
		if !e.own() {
			overlaps = append(overlaps, h.Overlaps()...)
			e.Overtaken = max(e.Overtaken, h.Overtaken(r.server.Begun))
		}
		done, handed = done+r.done, handed+float64(len(over))
		sent += float64(e.Sent(r.server.Commands))
		client, server = client+r.clientCPU, server+r.server.CPU
		writes += float64(r.server.Writes)
	}
	e.Pair, e.Wait, e.HandOver = stats.Summarize(pairs), stats.Summarize(waits), stats.Summarize(handOvers)
	e.Jain = stats.Jain(shares)
	for _, n := range shares {
		if n == 0 {
			e.Never++
		}
	}
	if done > 0 {
		e.Commands, e.Writes = sent/done, writes/done
		e.ClientCPU, e.ServerCPU = time.Duration(float64(client)/done), time.Duration(float64(server)/done)
	}
	if handed > 0 {
		e.PerHandOver = sent / handed
	}
	if len(overlaps) > 0 {
		return fmt.Errorf("EXCLUSION BROKEN %d times; first: %s", len(overlaps), overlaps[0].Text)
	}
	return nil
}
