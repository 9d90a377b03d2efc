package measure

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/stats"
	"github.com/redlatch/redlatch/test/bench/worker"
)

const (
	// lead is how long after their order processes begin, so that all of them
	// have it.
	lead = 200 * time.Millisecond
	// tail is how long before the end the counters are read: at the end itself
	// all who wait give up, which is not what is measured.
	tail = 50 * time.Millisecond
	// late is how long after a pair, which waits for a majority, the requests to
	// the rest of the servers arrive at the most.
	late = 10 * time.Millisecond
)

// contend measures contenders for locks, goroutines of this process or processes.
// All are ready at once, and take turns in every round, in which every time
// another one begins. Those that wait for their turn do nothing but keep their
// connections.
func contend(ctx context.Context, entrants []*entrant) {
	each(ctx, entrants, func(e *entrant) (err error) {
		if e.Work == Inside {
			e.team, err = worker.Local(e.configs()[0])
		} else {
			e.team, err = worker.Start(ctx, e.configs())
		}
		return err
	})
	if entrants[0].Warm > 0 {
		each(ctx, entrants, func(e *entrant) error {
			_, err := e.round(ctx, 0, e.Warm)
			e.Errors, e.Error = 0, ""
			return err
		})
	}
	inTurns(ctx, entrants, func(e *entrant) error {
		r, err := e.round(ctx, e.Settle, e.For)
		e.rounds = append(e.rounds, r)
		return err
	})
}

// inTurns does something with each entrant in every round; each time another one
// begins.
func inTurns(ctx context.Context, entrants []*entrant, do func(e *entrant) error) {
	for n := range max(entrants[0].Rounds, 1) {
		from := n % len(entrants)
		each(ctx, slices.Concat(entrants[from:], entrants[:from]), do)
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

// round has the contenders contend for a new name, and counts what they do after
// settle.
func (e *entrant) round(ctx context.Context, settle, length time.Duration) (round, error) {
	name := newName()
	runtime.GC()
	if e.Work == Inside {
		return e.inside(name, length)
	}
	begin := clock.Now() + int64(lead)
	o := worker.Order{Name: name, Start: begin, End: begin + int64(settle+length+tail)}
	run := func() error {
		if err := e.team.Begin(o); err != nil {
			return err
		}
		return sleep(ctx, begin+int64(settle))
	}
	// What counts begins with the order, or after settle.
	if settle > 0 {
		if err := run(); err != nil {
			return round{}, err
		}
		run = func() error { return nil }
	}
	r, err := e.counted(func() error { return errors.Join(run(), sleep(ctx, o.End-int64(tail))) })
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

// inside has goroutines contend, and counts all that they do.
func (e *entrant) inside(name string, length time.Duration) (round, error) {
	var all round
	r, err := e.counted(func() error {
		o := worker.Order{Name: name, End: clock.Now() + int64(length)}
		if err := e.team.Begin(o); err != nil {
			return err
		}
		return e.finish(o, &all)
	})
	r.history, r.done = all.history, float64(all.history.Acquisitions())
	return r, err
}

// finish waits until an order is done.
func (e *entrant) finish(o worker.Order, r *round) error {
	requests, done, err := e.team.Finish(o)
	r.history = stats.History{Contenders: e.Count, Requests: requests}
	if e.Errors += done.Errors; e.Error == "" {
		e.Error = done.Error
	}
	return err
}
