package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/server"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/bench/worker"
)

const (
	// lead is how long after they were told contenders begin, so that all of
	// them were told.
	lead = 200 * time.Millisecond
	// tail is how long before the end the servers' counters are read: at the
	// end itself all who wait give up, which is not what is measured.
	tail = 50 * time.Millisecond
	// probePause is how often a raw round trip is taken meanwhile: often
	// enough for a median, too rarely to be felt.
	probePause = 50 * time.Millisecond
)

// contended measures processes that want the same lock.
func (r *Runner) contended(ctx context.Context, result *Result) error {
	s, err := system.Find(result.System)
	if err != nil {
		return err
	}
	backend, err := r.backend(ctx, s, result.Nodes)
	if err != nil {
		return err
	}
	team, err := worker.Start(ctx, contenders(result.Cell, backend.Addresses(), r.newName()))
	if err != nil {
		return err
	}
	defer team.Stop()
	probe, err := r.probe(ctx, *result)
	if err != nil {
		return err
	}
	defer probe.close()
	if result.Kind == cell.FrozenContended {
		if err := r.redis[result.Nodes].Freeze(); err != nil {
			return err
		}
		defer r.stopServers()
	}
	before, err := backend.Sample()
	if err != nil {
		return err
	}
	start := clock.Now() + int64(lead)
	o := worker.Order{Start: start, End: start + int64(r.Settings.ContendFor(result.Cell))}
	if err := team.Begin(o); err != nil {
		return err
	}
	after, err := observe(ctx, backend, probe, o)
	if err != nil {
		return err
	}
	report, history, err := team.Finish(o)
	if err != nil {
		return err
	}
	result.Errors, result.Error = report.Errors, report.Error
	result.Contended = sumUp(history, o)
	c := result.Contended
	c.ClientCPU = per(report.CPU, c.Acquisitions)
	d := after.Sub(before)
	c.Counted = d.Commands
	// The counters were read before the end, so they are held against what
	// happened until then.
	part := history.Between(o.Start, after.Begun)
	sent := float64(s.Sent(d.Commands) - int64(len(probe.times)*result.Nodes))
	c.Commands = ratio(sent, float64(part.Acquisitions()))
	c.PerHandOver = ratio(sent, float64(len(part.HandOvers())))
	c.ServerCPU = per(d.CPU, part.Acquisitions())
	c.RoundTrip = probe.summary()
	if overlaps := history.Between(o.Start, o.End).Overlaps(); len(overlaps) > 0 {
		c.Overlaps = len(overlaps)
		result.Failed = fmt.Sprintf("EXCLUSION BROKEN %d times; first: %v", len(overlaps), overlaps[0])
	}
	return nil
}

// contenders returns the workers of a cell.
func contenders(c cell.Cell, addresses []string, name string) []worker.Config {
	processes, threads := c.Processes()
	configs := make([]worker.Config, processes)
	for i := range configs {
		configs[i] = worker.Config{
			Mode: worker.Contend, System: c.System, Addresses: addresses, Name: name,
			Threads: min(threads, c.Count-i*threads), First: int32(i * threads), Held: c.Held,
		}
	}
	return configs
}

// observe takes raw round trips until shortly before the end, and then reads
// the counters.
func observe(ctx context.Context, backend server.Backend, probe *probe, o worker.Order) (server.Sample, error) {
	stop, cancel := context.WithTimeout(ctx, clock.Until(o.End)-tail)
	defer cancel()
	if err := probe.every(stop, probePause); err != nil {
		return server.Sample{}, err
	}
	if ctx.Err() != nil {
		return server.Sample{}, ctx.Err()
	}
	return backend.Sample()
}

// sumUp says what the history of the ordered time shows.
func sumUp(history stats.History, o worker.Order) *Contended {
	h := history.Between(o.Start, o.End)
	handOvers := h.HandOvers()
	c := &Contended{
		Seconds:      time.Duration(o.End - o.Start).Seconds(),
		Acquisitions: h.Acquisitions(),
		HandOvers:    len(handOvers),
		Wait:         stats.Summarize(h.Waits()),
		HandOver:     stats.Summarize(handOvers),
		Held:         stats.Summarize(h.Held()),
		Jain:         stats.Jain(h.Shares()),
	}
	c.AcquisitionsRate = float64(c.Acquisitions) / c.Seconds
	c.HandOversRate = float64(c.HandOvers) / c.Seconds
	for _, n := range h.Shares() {
		if n == 0 {
			c.NeverServed++
		}
	}
	return c
}
