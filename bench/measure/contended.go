package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/stats"
)

// probePause is how often a raw round trip is taken beside contenders: often
// enough for a median, too rarely to be felt.
const probePause = 50 * time.Millisecond

// contended measures processes that want the same lock.
func (r *Runner) contended(ctx context.Context, result *Result) error {
	backend, err := r.backend(ctx, result.Cell)
	if err != nil {
		return err
	}
	team, err := contenders(ctx, result.Cell, backend.Addresses(), r.newName())
	if err != nil {
		return err
	}
	defer team.Stop()
	probe, err := r.probe(ctx, result.Cell)
	if err != nil {
		return err
	}
	defer probe.Close()
	stop, err := r.freeze(result.Cell)
	if err != nil {
		return err
	}
	defer stop()
	s, err := runShift(ctx, team, backend, 0, r.Settings.ContendFor(result.Cell), func(until int64) error {
		for clock.Now() < until {
			if err := probe.once(); err != nil {
				return err
			}
			if err := sleep(ctx, min(clock.Now()+int64(probePause), until)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	result.Errors, result.Error = s.report.Errors, s.report.Error
	h := s.history.Between(s.Start, s.End)
	c := &result.Contended
	*c = sumUp(h, time.Duration(s.End-s.Start))
	// The counters were read before the end, so they are compared with what
	// happened until then.
	part := s.history.Between(s.Start, s.counted.At)
	sent := float64(result.System.Sent(s.counted.Commands) - int64(len(probe.times)*result.Nodes))
	c.Costs = Costs{ratio(sent, float64(part.Acquisitions())), per(s.report.CPU, c.Acquisitions), per(s.counted.CPU, part.Acquisitions())}
	c.PerHandOver = ratio(sent, float64(len(part.HandOvers())))
	c.RoundTrip = stats.Summarize(probe.times)
	if overlaps := h.Overlaps(); len(overlaps) > 0 {
		result.Failed = fmt.Sprintf("EXCLUSION BROKEN %d times; first: %v", len(overlaps), overlaps[0])
	}
	return nil
}

// sumUp says what the history of a time shows.
func sumUp(h stats.History, length time.Duration) Contended {
	handOvers := h.HandOvers()
	c := Contended{
		Acquisitions: h.Acquisitions(),
		HandOvers:    len(handOvers),
		Wait:         stats.Summarize(h.Waits()),
		HandOver:     stats.Summarize(handOvers),
		Held:         stats.Summarize(h.Held()),
		Jain:         stats.Jain(h.Shares()),
	}
	c.AcquisitionsRate = float64(c.Acquisitions) / length.Seconds()
	c.HandOversRate = float64(c.HandOvers) / length.Seconds()
	for _, n := range h.Shares() {
		if n == 0 {
			c.NeverServed++
		}
	}
	return c
}
