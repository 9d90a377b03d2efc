package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/system"
	"github.com/redlatch/redlatch/bench/worker"
)

// waiting measures what it costs to wait for a lock that is kept by another,
// here by this process.
func (r *Runner) waiting(ctx context.Context, result *Result) error {
	s, err := system.Find(result.System)
	if err != nil {
		return err
	}
	backend, err := r.backend(ctx, s, result.Nodes)
	if err != nil {
		return err
	}
	locker, err := s.Open(ctx, backend.Addresses())
	if err != nil {
		return err
	}
	defer locker.Close()
	name := r.newName()
	team, err := worker.Start(ctx, contenders(result.Cell, backend.Addresses(), name))
	if err != nil {
		return err
	}
	defer team.Stop()
	held, err := locker.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer held.Release()
	start := clock.Now() + int64(lead)
	from := start + int64(r.Settings.SettleTime)
	o := worker.Order{Start: start, End: from + int64(r.Settings.WaitTime) + int64(tail)}
	if err := team.Begin(o); err != nil {
		return err
	}
	if err := sleep(ctx, from); err != nil {
		return err
	}
	before, err := backend.Sample()
	if err != nil {
		return err
	}
	if err := sleep(ctx, o.End-int64(tail)); err != nil {
		return err
	}
	after, err := backend.Sample()
	if err != nil {
		return err
	}
	report, history, err := team.Finish(o)
	if err != nil {
		return err
	}
	if n := history.Between(o.Start, o.End).Acquisitions(); n > 0 {
		return fmt.Errorf("EXCLUSION BROKEN: %d waiters got a lock that was held", n)
	}
	d := after.Sub(before)
	waiters := float64(result.Count)
	result.Errors, result.Error = report.Errors, report.Error
	seconds := time.Duration(d.At - d.Begun).Seconds()
	result.Waiting = &Waiting{
		Seconds:   seconds,
		Commands:  float64(s.Sent(d.Commands)) / waiters / seconds,
		ClientCPU: time.Duration(float64(report.CPU) / waiters / time.Duration(o.End-o.Start).Seconds()),
		Counted:   d.Commands,
	}
	return nil
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
