package redlatchcron

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
)

// Options are the settings of Jobs. The zero value works.
type Options struct {
	// Lock are the settings of each job's lock. Shared and Slots are refused.
	//
	// Lock.Wait is how long a replica waits for the one that runs the job, so
	// that it can take over if that one fails or dies. It should be longer than
	// the TTL. It defaults to the time until the job is due again, from one
	// minute to one day. A replica that has waited for so long skips the job
	// and logs it.
	Lock redlatch.LockOptions

	// Context ends the waits of replicas, and the contexts of jobs that have
	// one. It is for shutting down: the context that cron.Cron.Stop returns
	// waits for both. Defaults to context.Background.
	Context context.Context

	// Logger logs jobs that were skipped or failed, and, at level debug, where
	// each job ran. Defaults to slog.Default.
	Logger *slog.Logger

	// OnError is called when a job was skipped because its lock was not
	// available, when it returned an error, and when its lock was lost while it ran.
	// Defaults to none.
	OnError func(name string, due time.Time, err error)
}

// Func is a job that knows its lock. ctx ends when the lock is lost, and with
// Options.Context. An error says that the job is not done: a replica that waits
// runs it, for the same time.
type Func func(ctx context.Context, lease *redlatch.Lease) error

// A LockedJob is a job that knows its lock. RunLocked is called instead of Run;
// see Func.
type LockedJob interface {
	cron.Job
	RunLocked(ctx context.Context, lease *redlatch.Lease) error
}

// Jobs adds jobs to a scheduler that run on one replica.
type Jobs struct {
	cron  *cron.Cron
	locks *redlatch.Client
	opts  Options
}

// New returns Jobs for a scheduler. Locks are the client's; all replicas must
// have clients of the same nodes.
func New(c *cron.Cron, locks *redlatch.Client, opts *Options) (*Jobs, error) {
	if c == nil {
		return nil, &redlatch.ConfigError{Field: "cron", Value: "nil", Bound: "a scheduler of cron.New"}
	}
	o := optional.Value(opts)
	if locks == nil {
		return nil, &redlatch.ConfigError{Field: "locks", Value: "nil", Bound: "a client of redlatch.New"}
	}
	if o.Lock.Shared || o.Lock.Slots != 0 {
		return nil, &redlatch.ConfigError{Field: "Lock.Shared", Value: fmt.Sprintf("%v with %d Slots", o.Lock.Shared, o.Lock.Slots),
			Bound: "left out, and Lock.Slots too: one replica runs a job"}
	}
	o.Context = cmp.Or(o.Context, context.Background())
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return &Jobs{c, locks, o}, nil
}

// AddJob adds a job like the scheduler's method of that name. name is the lock's
// and must be the same on all replicas, and different for each job. The wrappers
// of the scheduler's chain are around the lock.
func (j *Jobs) AddJob(name, spec string, job cron.Job) (cron.EntryID, error) {
	return j.AddFunc(name, spec, work(job))
}

// AddFunc is like AddJob, for a function that knows its lock.
func (j *Jobs) AddFunc(name, spec string, fn Func) (cron.EntryID, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	job := j.job(name, fn)
	id, err := j.cron.AddJob(spec, job)
	if err != nil {
		return 0, err
	}
	// Only the scheduler has the parser, so the schedule comes from there.
	job.setSchedule(j.cron.Entry(id).Schedule, j.cron.Location())
	return id, nil
}

// Wrapper returns a wrapper for a chain of a job's own. schedule is the one that
// the job is added with, by cron.Cron.Schedule. Wrappers that come after it in
// the chain run under the lock, and hide a LockedJob from it. Put cron.Recover
// before it: a job that panics is not done, but one whose panic was recovered
// under the lock is.
func (j *Jobs) Wrapper(name string, schedule cron.Schedule) (cron.JobWrapper, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if schedule == nil {
		return nil, &redlatch.ConfigError{Field: "schedule", Value: "nil", Bound: "the schedule that the job is added with"}
	}
	return func(job cron.Job) cron.Job {
		return j.job(name, work(job)).setSchedule(schedule, j.cron.Location())
	}, nil
}

type dueKey struct{}

// Due returns the time for which a job runs, from the context of a Func or
// LockedJob.
func Due(ctx context.Context) time.Time {
	due, _ := ctx.Value(dueKey{}).(time.Time)
	return due
}

// checkName returns an error for a name that no lock can have.
func checkName(name string) error {
	if name == "" {
		return &redlatch.ConfigError{Field: "name", Value: name, Bound: "the name of the job, the same on all replicas"}
	}
	return nil
}

// work returns how to run a job.
func work(job cron.Job) Func {
	if l, ok := job.(LockedJob); ok {
		return l.RunLocked
	}
	return func(context.Context, *redlatch.Lease) error {
		job.Run()
		return nil
	}
}
