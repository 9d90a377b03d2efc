package measure

import (
	"context"
	"fmt"
	"time"
)

// waiting measures what it costs to wait for a lock that another holds, here
// this process.
func (r *Runner) waiting(ctx context.Context, result *Result) error {
	backend, err := r.backend(ctx, result.Cell)
	if err != nil {
		return err
	}
	locker, err := result.System.Open(ctx, backend.Addresses())
	if err != nil {
		return err
	}
	defer locker.Close()
	name := r.newName()
	team, err := contenders(ctx, result.Cell, backend.Addresses(), name)
	if err != nil {
		return err
	}
	defer team.Stop()
	held, err := locker.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer held.Release()
	s, err := runShift(ctx, team, backend, r.Settings.SettleTime, r.Settings.WaitTime+tail, nil)
	if err != nil {
		return err
	}
	if n := s.history.Between(s.Start, s.End).Acquisitions(); n > 0 {
		return fmt.Errorf("EXCLUSION BROKEN: %d waiters got a lock that was held", n)
	}
	result.Errors, result.Error = s.report.Errors, s.report.Error
	order, counted := s.seconds()
	waiters := float64(result.Count)
	result.Waiting = Waiting{
		Commands:  float64(result.System.Sent(s.counted.Commands)) / waiters / counted,
		ClientCPU: time.Duration(float64(s.report.CPU) / waiters / order),
	}
	return nil
}
