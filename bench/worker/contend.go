package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
)

// afterFailure is how long a contender pauses after a call that failed, and
// again as long at random: one that asks again at once would keep servers that
// are overloaded from recovering.
const afterFailure = 100 * time.Millisecond

// prepareContend connects, and has every contender take a lock of its own
// once, so that no connection is made and no script is loaded later.
func prepareContend(ctx context.Context, s *system.System, c Config) (work, error) {
	shared, err := s.Open(ctx, c.Addresses)
	if err != nil {
		return nil, err
	}
	lockers := make([]system.Locker, c.Threads)
	errs := make([]error, c.Threads)
	var all sync.WaitGroup
	for i := range lockers {
		all.Go(func() {
			lockers[i] = shared
			if f, ok := shared.(system.Forker); ok {
				if lockers[i], errs[i] = f.Fork(); errs[i] != nil {
					return
				}
			}
			var held system.Held
			held, errs[i] = insist(ctx, lockers[i], fmt.Sprintf("%s/warm/%d", c.Name, int(c.First)+i))
			if errs[i] == nil {
				// What a crowd that connects at once does not get done in time
				// is no matter here.
				_ = held.Release()
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("first lock of a contender: %w", err)
	}
	return func(o Order) Report { return contend(lockers, c, o) }, nil
}

func contend(lockers []system.Locker, c Config, o Order) Report {
	// Not a deadline: some contenders shorten their locks to it.
	ctx, end := context.WithCancel(context.Background())
	defer end()
	defer time.AfterFunc(clock.Until(o.End), end).Stop()
	var failed failures
	holds := make([][]stats.Hold, len(lockers))
	var all sync.WaitGroup
	for i, l := range lockers {
		all.Go(func() {
			holds[i] = contender{l, c, c.First + int32(i), o.End, &failed}.run(ctx)
		})
	}
	all.Wait()
	return Report{Errors: failed.count, Error: failed.first, Holds: slices.Concat(holds...)}
}

// contender is one of those who want the lock.
type contender struct {
	locker system.Locker
	config Config
	number int32
	end    int64
	failed *failures
}

func (c contender) run(ctx context.Context) []stats.Hold {
	holds := make([]stats.Hold, 0, 1024)
	called := clock.Now()
	for ctx.Err() == nil {
		held, err := c.locker.Lock(ctx, c.config.Name)
		acquired := clock.Now()
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			// It goes on waiting: the time since it first asked counts.
			c.failed.add(fmt.Errorf("lock: %w", err))
			time.Sleep(afterFailure + rand.N(afterFailure))
			continue
		}
		if c.config.Held > 0 {
			time.Sleep(c.config.Held)
		}
		released := clock.Now()
		holds = append(holds, stats.Hold{
			Contender: c.number, Got: true, Called: called, Acquired: acquired, Released: released,
		})
		if err := held.Release(); err != nil && ctx.Err() == nil {
			c.failed.add(fmt.Errorf("release: %w", err))
		}
		called = clock.Now()
	}
	if called < c.end {
		holds = append(holds, stats.Hold{Contender: c.number, Called: called, Acquired: c.end})
	}
	return holds
}
