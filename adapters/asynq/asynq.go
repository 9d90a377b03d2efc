// Package redlatchasynq runs a scheduler of asynq in one process of many, with
// redlatch. A scheduler enqueues tasks at the times of its schedule; two of them
// would enqueue each task twice:
//
//	err := redlatchasynq.Run(ctx, locks, "scheduler", nil, func(*redlatch.Lease) (redlatchasynq.Scheduler, error) {
//		s := asynq.NewScheduler(queue, nil)
//		_, err := s.Register("0 3 * * *", asynq.NewTask("report", nil))
//		return s, err
//	})
//
// The scheduler runs in the process that leads. It is shut down before its
// lease's deadline, so before another process can lead. If the process dies,
// another one leads after the TTL of 10 s. What is due in between is not
// enqueued; to have every occurrence enqueued, use the module adapters/cron and
// a client of asynq.
package redlatchasynq

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/margin"
)

// Scheduler is what runs in one process: an *asynq.Scheduler or an
// *asynq.PeriodicTaskManager.
type Scheduler interface {
	Start() error
	Shutdown()
}

var (
	_ Scheduler = (*asynq.Scheduler)(nil)
	_ Scheduler = (*asynq.PeriodicTaskManager)(nil)
)

// Run is a candidate of the election called name until ctx ends. Whenever this
// process leads, it starts the scheduler that newScheduler returns, and shuts it
// down when it no longer leads. newScheduler is called in each term, since a
// scheduler cannot be started again; the lease has the term's token.
//
// The scheduler is shut down when a quarter of the TTL is left: a lease that is
// extended always has more. Shutdown waits for tasks that are being enqueued.
//
// Run returns when ctx has ended, when newScheduler or Start failed, and after the
// errors of redlatch.Client.Lead, whose options it takes.
func Run(ctx context.Context, locks *redlatch.Client, name string, opts *redlatch.LockOptions, newScheduler func(*redlatch.Lease) (Scheduler, error)) error {
	if locks == nil {
		return &redlatch.ConfigError{Field: "locks", Value: nil, Bound: "a client of redlatch"}
	}
	for {
		err := locks.Lead(ctx, name, opts, func(ctx context.Context, lease *redlatch.Lease) error {
			term, stop := margin.Context(ctx, lease.Remaining, lease.TTL()/4)
			defer stop()
			s, err := newScheduler(lease)
			if err != nil {
				return err
			}
			if err := s.Start(); err != nil {
				return err
			}
			<-term.Done()
			s.Shutdown()
			if ctx.Err() == nil {
				return margin.ErrEarly
			}
			return nil
		})
		if !errors.Is(err, margin.ErrEarly) || ctx.Err() != nil {
			return err
		}
	}
}
