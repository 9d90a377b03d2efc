package measure

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
)

// probe takes raw round trips beside a measurement.
type probe struct {
	trip  *system.RoundTrip
	times []time.Duration
}

// probe connects to the servers of a cell; to none if they are not Redis, or
// one of them is to be frozen.
func (r *Runner) probe(ctx context.Context, result Result) (*probe, error) {
	s, err := system.Find(result.System)
	if err != nil || s.Store != system.Redis || result.Kind == cell.FrozenPair || result.Kind == cell.FrozenContended {
		return &probe{}, err
	}
	b, err := r.backend(ctx, s, result.Nodes)
	if err != nil {
		return nil, err
	}
	trip, err := system.OpenRoundTrip(b.Addresses())
	if err != nil {
		return nil, err
	}
	return &probe{trip: trip}, nil
}

func (p *probe) close() {
	if p.trip != nil {
		p.trip.Close()
	}
}

// turn takes a few round trips.
func (p *probe) turn() error {
	for range batchPairs {
		if err := p.once(); err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) once() error {
	if p.trip == nil {
		return nil
	}
	d, err := p.trip.Once()
	p.times = append(p.times, d)
	return err
}

// every takes a round trip each so often until ctx ends.
func (p *probe) every(ctx context.Context, pause time.Duration) error {
	for ctx.Err() == nil {
		if err := p.once(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// summary returns the times, or nil if there are none.
func (p *probe) summary() *stats.Summary {
	if len(p.times) == 0 {
		return nil
	}
	s := stats.Summarize(p.times)
	return &s
}
