package measure

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/stats"
	"github.com/redlatch/redlatch/test/bench/worker"
)

const (
	// lead is how long after their order processes begin, so that all of them
	// have it.
	lead = 100 * time.Millisecond
	// tail is how long before the end the counters are read: at the end itself
	// all who wait give up, which is not what is measured.
	tail = 50 * time.Millisecond
)

// contend measures contenders for locks, goroutines of one process or processes.
// All are ready at once, and take turns in every round, in which every time
// another one begins. Those that wait for their turn do nothing but keep their
// connections.
func contend(ctx context.Context, entrants []*entrant) {
	each(ctx, entrants, func(e *entrant) (err error) {
		e.team, err = worker.Start(ctx, e.configs())
		return err
	})
	for n := range max(entrants[0].Rounds, 1) + 1 {
		from := n % len(entrants)
		each(ctx, slices.Concat(entrants[from:], entrants[:from]), func(e *entrant) error {
			r, err := e.round(ctx)
			if e.rounds = append(e.rounds, r); n == 0 { // it warms up
				e.rounds, e.Errors, e.Error = nil, 0, ""
			}
			return err
		})
	}
}

// configs are the processes of a cell: one for each contender, or one for all.
func (e *entrant) configs() []worker.Config {
	processes, threads := e.Count, 1
	if e.Work == Inside {
		processes, threads = 1, e.Count
	}
	var list []worker.Config
	for i := range processes {
		list = append(list, worker.Config{
			Contender: e.Key, Addresses: e.backend.Addresses(),
			Contenders: threads, First: int32(i), Own: e.own(), Held: e.Held,
		})
	}
	return list
}

// round has the contenders contend for a new name, and counts what they do.
func (e *entrant) round(ctx context.Context) (round, error) {
	begin := clock.Now() + int64(lead)
	o := worker.Order{Name: newName(), Start: begin, End: begin + int64(e.For+tail)}
	r, err := e.counted(func() error {
		if err := e.team.Begin(o); err != nil {
			return err
		}
		return clock.Wait(ctx, clock.Until(o.End-int64(tail)))
	})
	if err == nil {
		err = e.finish(o, &r)
	}
	if err != nil {
		return round{}, err
	}
	r.length = time.Duration(r.server.At - max(r.server.Begun, begin))
	r.history = r.history.Between(r.server.Begun, r.server.At)
	r.done = float64(r.history.Acquisitions())
	return r, nil
}

// finish waits until an order is done.
func (e *entrant) finish(o worker.Order, r *round) error {
	done, err := e.team.Finish(o)
	r.history = stats.History{Contenders: e.Count, Requests: done.Requests}
	if e.Errors += done.Errors; e.Error == "" {
		e.Error = done.Error
	}
	return err
}
