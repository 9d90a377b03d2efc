package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/stats"
	"github.com/redlatch/redlatch/test/bench/worker"
)

// extend measures what an extension costs the server while many readers hold one
// name. The client keeps all of them alive meanwhile.
func (e *entrant) extend(ctx context.Context) error {
	name := newName()
	extend, held := make([]contender.Release, e.Count), make([]contender.Release, e.Count)
	err := all(e.Count, func(i int) (err error) {
		extend[i], held[i], err = e.locker.Read(ctx, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("%d readers: %w", e.Count, err)
	}
	n := 0
	r, err := e.counted(func() (err error) {
		for end := clock.Now() + int64(e.For); clock.Now() < end && err == nil; n++ {
			err = extend[n%e.Count](ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.done = float64(n)
	e.rounds, e.Extensions = append(e.rounds, r), append(e.Extensions, float64(r.server.PerScript()))
	return all(e.Count, func(i int) error { return held[i](ctx) })
}

// mostClients is how many clients wait at the most, each with its connections.
const mostClients = 256

// wait measures what waiters cost while the lock is held, and how fast they get
// it one after the other when it is released.
func (e *entrant) wait(ctx context.Context) error {
	name := newName()
	release, err := e.locker.Lock(ctx, name)
	if err != nil {
		return err
	}
	lockers := []*contender.Locker{e.locker}
	if e.Apart {
		lockers = slices.Repeat(lockers, min(e.Count, mostClients))
		defer all(len(lockers), func(i int) error { lockers[i].Close(); return nil })
		err = all(len(lockers), func(i int) error {
			l, err := e.Open(ctx, e.backend.Addresses())
			if err == nil {
				lockers[i], err = l, worker.Insist(ctx, l, newName())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	goroutines, memory := footprint()
	long, end := context.WithCancel(ctx)
	defer end()
	requests, failed := make([]stats.Request, e.Count), make([]error, e.Count)
	var waiters sync.WaitGroup
	for i := range e.Count {
		waiters.Go(func() {
			r := stats.Request{Contender: int32(i), Called: clock.Now()}
			free, err := lockers[i%len(lockers)].Lock(long, name)
			r.Acquired = clock.Now()
			if err == nil {
				r.Got, r.Released = true, clock.Now()
				err = free(ctx)
			}
			requests[i], failed[i] = r, err
		})
	}
	if err := sleep(ctx, clock.Now()+int64(e.Settle)); err != nil {
		return err
	}
	more, bytes := footprint()
	kept, err := e.counted(func() error { return sleep(ctx, clock.Now()+int64(e.For)) })
	if err != nil {
		return err
	}
	kept.done = kept.length.Seconds() * float64(e.Count)
	drained, err := e.counted(func() error {
		err := release(ctx)
		defer time.AfterFunc(time.Minute, end).Stop()
		waiters.Wait()
		return errors.Join(append(failed, err)...)
	})
	if err != nil {
		return err
	}
	// The holder released it after all that was counted, if nobody came before.
	kept.history = stats.History{Contenders: e.Count, Requests: requests}
	e.rounds = append(e.rounds, kept)
	e.Result.Kept = Kept{
		Goroutines: more - goroutines, Client: max(bytes-memory, 0) / float64(e.Count),
		Drain:         float64(e.Count) / drained.length.Seconds(),
		DrainCommands: float64(e.Sent(drained.server.Commands)) / float64(e.Count),
	}
	return nil
}

// parts are what names that are used once are counted in.
const parts = 10

// once locks and releases names, each once, some at a time, and measures what is
// left of them.
func (e *entrant) once(ctx context.Context) error {
	_, memory := footprint()
	left, used := 0.0, e.Count/parts
	for part := range parts {
		r, err := e.counted(func() error {
			return all(used, func(i int) error {
				release, err := e.locker.Lock(ctx, fmt.Sprintf("once/%d/%07d", part, i))
				if err == nil {
					err = release(ctx)
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		r.done = float64(used)
		e.rounds = append(e.rounds, r)
		left += r.server.Memory
	}
	_, after := footprint()
	e.Result.Kept = Kept{After: left / float64(parts*used*e.Nodes), Client: max(after-memory, 0) / float64(parts*used)}
	return nil
}
