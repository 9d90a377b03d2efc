// Package once runs the jobs of a scheduler once for each time at which they are
// due, on one of many replicas. It knows no scheduler; the packages above it fit
// it into theirs.
package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/opt"
)

const (
	// minWait is the shortest default of how long a replica waits for another
	// one: longer than a lock outlives a holder that was killed, with the
	// default MaxTTL of 30 s.
	minWait = time.Minute
	// maxWait is the longest one. After it something is wrong, and the log
	// should show it.
	maxWait = 24 * time.Hour
)

// Options are the settings of a Runner. The packages above document them.
type Options struct {
	Lock    redlatch.LockOptions
	Context context.Context
	Logger  *slog.Logger
	OnError func(name string, due time.Time, err error)
}

// Func is the work of a job.
type Func func(ctx context.Context, lease *redlatch.Lease) error

// Runner makes jobs that run once.
type Runner struct {
	locks *redlatch.Client
	opts  Options
}

// New returns a runner, or an error for an option that cannot work.
func New(locks *redlatch.Client, opts *Options) (*Runner, error) {
	o := opt.Value(opts)
	if locks == nil {
		return nil, &redlatch.ConfigError{Field: "locks", Value: "nil", Bound: "a client of redlatch.New"}
	}
	if o.Lock.Shared || o.Lock.Slots != 0 {
		return nil, &redlatch.ConfigError{Field: "Lock.Shared", Value: fmt.Sprintf("%v with %d Slots", o.Lock.Shared, o.Lock.Slots),
			Bound: "left out, and Lock.Slots too: one replica runs a job"}
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Runner{locks, o}, nil
}

// Check returns an error for a name that no lock can have.
func Check(name string) error {
	if name == "" {
		return &redlatch.ConfigError{Field: "name", Value: name, Bound: "the name of the job, the same on all replicas"}
	}
	return nil
}

// Job is a job that runs once for each time at which it is due.
type Job struct {
	runner *Runner
	name   string
	run    Func
	known  chan struct{} // closed when the schedule is known

	schedule Schedule
	location *time.Location
}

// Job returns a job whose schedule is not known yet: it waits for SetSchedule.
func (r *Runner) Job(name string, run Func) *Job {
	return &Job{runner: r, name: name, run: run, known: make(chan struct{})}
}

// SetSchedule sets the schedule, and the time zone of the scheduler. It is
// called once.
func (j *Job) SetSchedule(s Schedule, location *time.Location) *Job {
	j.schedule, j.location = s, location
	close(j.known)
	return j
}

// Run runs the job for the time at which it is due now, unless another replica
// does or did.
func (j *Job) Run() { j.RunWithContext(j.runner.opts.Context) }

// RunWithContext is like Run, with the scheduler's context.
func (j *Job) RunWithContext(ctx context.Context) {
	now := time.Now()
	<-j.known
	now = now.In(j.location)
	due := Due(j.schedule, now)
	opts := j.runner.opts.Lock
	if opts.Wait == 0 && opts.Tries == 0 {
		opts.Wait = min(max(j.schedule.Next(now).Sub(now), minWait), maxWait)
	}
	ran, err := j.runner.locks.Once(ctx, j.name, due.UTC().Format(time.RFC3339Nano), &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return j.run(context.WithValue(ctx, dueKey{}, due), lease)
	})
	j.report(ctx, due, ran, err)
}

// report logs what became of the job.
func (j *Job) report(ctx context.Context, due time.Time, ran bool, err error) {
	log := j.runner.opts.Logger.With("job", j.name, "due", due)
	switch {
	case err == nil && ran:
		log.Debug("redlatch: job ran")
	case err == nil:
		log.Debug("redlatch: job ran on another replica")
	case ran:
		log.Error("redlatch: job failed, or lost its lock, and another replica may run it", "err", err)
	case errors.Is(err, redlatch.ErrHeld):
		log.Warn("redlatch: job is skipped: another replica holds its lock", "err", err)
	case ctx.Err() != nil:
		log.Info("redlatch: job is not run: the scheduler stops", "err", err)
	default:
		log.Error("redlatch: job skipped: cannot acquire its lock", "err", err)
	}
	if onError := j.runner.opts.OnError; err != nil && onError != nil {
		onError(j.name, due, err)
	}
}

type dueKey struct{}

// DueOf returns the time for which the job of a context runs.
func DueOf(ctx context.Context) time.Time {
	due, _ := ctx.Value(dueKey{}).(time.Time)
	return due
}
