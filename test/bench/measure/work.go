package measure

import (
	"cmp"
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
	// crowded is how long a crowd is left alone before it is measured: it begins at
	// once, and some of its connections are made anew for every round.
	crowded = time.Second
	// crowdProcesses is how many processes a crowd is in.
	crowdProcesses = 8
)

// contend measures contenders for locks, goroutines of one process or processes.
// All are ready at once, and take turns in every round, in which every time
// another one begins. Those that wait for their turn do nothing but keep their
// connections.
func contend(ctx context.Context, entrants []*entrant) {
	each(ctx, entrants, func(e *entrant) (err error) {
		e.team, err = worker.Start(ctx, e.configs(0))
		if err == nil && e.Single {
			e.single, err = worker.Start(ctx, e.configs(1))
		}
		return err
	})
	for n := range max(entrants[0].Rounds, 1) + 1 {
		from := n % len(entrants)
		each(ctx, slices.Concat(entrants[from:], entrants[:from]), func(e *entrant) error {
			if n == 0 && e.Crowd { // each of its rounds warms up
				return nil
			}
			r, err := e.round(ctx, e.team)
			if e.rounds = append(e.rounds, r); e.Single && err == nil {
				r, err = e.round(ctx, e.single)
				e.Alone = append(e.Alone, r.done/r.length.Seconds())
			}
			if n == 0 { // it warms up
				e.rounds, e.Alone, e.Errors, e.Error = nil, nil, 0, ""
			}
			return err
		})
	}
}

// configs are the processes of a cell: one for each contender, one for all, or some
// for a crowd. procs is how many processors Go's code has, 0 for all.
func (e *entrant) configs(procs int) []worker.Config {
	processes := e.Count
	if e.Work == Inside {
		processes = 1
	} else if e.Crowd {
		processes = min(processes, crowdProcesses)
	}
	threads := e.Count / processes
	var list []worker.Config
	for i := range processes {
		list = append(list, worker.Config{
			Contender: e.Key, Addresses: e.backend.Addresses,
			Contenders: threads, First: int32(i * threads), Own: e.own(), Held: e.Held,
			Apart: e.Crowd, Deadline: e.Deadline, Procs: procs,
		})
	}
	return list
}

// round lets the contenders contend for a new name, and counts what they do.
func (e *entrant) round(ctx context.Context, team *worker.Team) (round, error) {
	begin := clock.Now() + int64(lead)
	o := worker.Order{Name: newName(), Start: begin, End: begin + int64(e.For+tail)}
	if e.Crowd {
		o.End += int64(crowded)
	}
	err := team.Begin(o)
	if err == nil && e.Crowd {
		err = clock.Wait(ctx, lead+crowded)
	}
	if err != nil {
		return round{}, err
	}
	r, err := e.counted(team.CPU, func() error { return clock.Wait(ctx, clock.Until(o.End-int64(tail))) })
	if err != nil {
		return round{}, err
	}
	done, err := team.Finish(o)
	e.Errors, e.Unreleased, e.Lost = e.Errors+done.Errors, e.Unreleased+done.Unreleased, e.Lost+done.Lost
	e.Error = cmp.Or(e.Error, done.Error)
	if err != nil {
		return round{}, err
	}
	r.length = time.Duration(r.server.At - max(r.server.Begun, begin))
	r.history = stats.History{Contenders: e.Count, Requests: done.Requests}.Between(r.server.Begun, r.server.At)
	r.done = float64(r.history.Acquisitions())
	return r, nil
}
