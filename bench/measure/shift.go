package measure

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/worker"
)

const (
	// lead is how long after their order workers begin, so that all of them
	// have it.
	lead = 200 * time.Millisecond
	// tail is how long before the end the servers' counters are read: at the
	// end itself all who wait give up, which is not what is measured.
	tail = 50 * time.Millisecond
)

// shift is one order to a team of workers, and what came of it.
type shift struct {
	worker.Order
	report  worker.Report
	history stats.History
	// counted is what the servers counted, from settle after the start until
	// tail before the end.
	counted server.Sample
}

// seconds returns how long the order lasted, and how long servers counted.
func (s *shift) seconds() (order, counted float64) {
	return time.Duration(s.End - s.Start).Seconds(), time.Duration(s.counted.At - s.counted.Begun).Seconds()
}

// runShift has a team work for a time. Counting begins with the work, or, with
// settle, so long after it. meanwhile is called while the team works, and may be
// nil.
func runShift(ctx context.Context, team *worker.Team, backend server.Backend, settle, length time.Duration, meanwhile func(until int64) error) (*shift, error) {
	before, err := backend.Sample()
	if err != nil {
		return nil, err
	}
	start := clock.Now() + int64(lead)
	s := &shift{Order: worker.Order{Start: start, End: start + int64(settle+length)}}
	if err := team.Begin(s.Order); err != nil {
		return nil, err
	}
	if settle > 0 {
		if err := sleep(ctx, start+int64(settle)); err != nil {
			return nil, err
		}
		if before, err = backend.Sample(); err != nil {
			return nil, err
		}
	}
	last := s.End - int64(tail)
	if meanwhile != nil {
		if err := meanwhile(last); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, last); err != nil {
		return nil, err
	}
	after, err := backend.Sample()
	if err != nil {
		return nil, err
	}
	s.counted = after.Sub(before)
	s.report, s.history, err = team.Finish(s.Order)
	return s, err
}

// contenders starts the workers of a cell that want one name.
func contenders(ctx context.Context, c cell.Cell, addresses []string, name string) (*worker.Team, error) {
	processes, threads := c.Processes()
	configs := make([]worker.Config, processes)
	for i := range configs {
		configs[i] = worker.Config{
			System: c.System.Key, Addresses: addresses, Name: name,
			Threads: min(threads, c.Count-i*threads), First: int32(i * threads), Held: c.Held,
		}
	}
	return worker.Start(ctx, configs)
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
