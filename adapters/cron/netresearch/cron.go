package redlatchnetresearch

import (
	"context"
	"log/slog"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/cron/internal/once"
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

	// Context is for jobs that do not get the scheduler's context because a
	// wrapper of the chain, such as cron.Recover, hides that they take one. It
	// ends their waits, and the contexts of jobs that have one. Defaults to
	// context.Background.
	Context context.Context

	// Logger logs jobs that were skipped or failed, and, at level debug, where
	// each job ran. Defaults to slog.Default.
	Logger *slog.Logger

	// OnError is called when a job was skipped because its lock was not
	// available, when it returned an error, and when its lock was lost while it ran.
	// Defaults to none.
	OnError func(name string, due time.Time, err error)
}

// Func is a job that knows its lock. ctx ends when the lock is lost, and when
// the scheduler stops. An error says that the job is not done: a replica that
// waits runs it, for the same time.
type Func func(ctx context.Context, lease *redlatch.Lease) error

// A LockedJob is a job that knows its lock. RunLocked is called instead of Run;
// see Func.
type LockedJob interface {
	cron.Job
	RunLocked(ctx context.Context, lease *redlatch.Lease) error
}

// Jobs adds jobs to a scheduler that run on one replica.
type Jobs struct {
	cron   *cron.Cron
	runner *once.Runner
}

// New returns Jobs for a scheduler. Locks are the client's; all replicas must
// have clients of the same nodes.
func New(c *cron.Cron, locks *redlatch.Client, opts *Options) (*Jobs, error) {
	if c == nil {
		return nil, &redlatch.ConfigError{Field: "cron", Value: "nil", Bound: "a scheduler of cron.New"}
	}
	runner, err := once.New(locks, (*once.Options)(opts))
	if err != nil {
		return nil, err
	}
	return &Jobs{c, runner}, nil
}

// AddJob adds a job like the scheduler's method of that name. name is the lock's
// and must be the same on all replicas, and different for each job; it is not
// the entry's name, which is an option of the scheduler. The wrappers of the
// scheduler's chain are around the lock.
//
// With cron.WithRunImmediately a job first runs for the last time at which it
// was due, unless a replica has run it then.
func (j *Jobs) AddJob(name, spec string, job cron.Job, opts ...cron.JobOption) (cron.EntryID, error) {
	return j.add(name, spec, work(job), opts)
}

// AddFunc is like AddJob, for a function that knows its lock.
func (j *Jobs) AddFunc(name, spec string, fn Func, opts ...cron.JobOption) (cron.EntryID, error) {
	return j.add(name, spec, once.Func(fn), opts)
}

func (j *Jobs) add(name, spec string, run once.Func, opts []cron.JobOption) (cron.EntryID, error) {
	if err := once.Check(name); err != nil {
		return 0, err
	}
	job := j.runner.Job(name, run)
	// Only the scheduler has the parser, so the schedule comes from there.
	schedule := func(e *cron.Entry) { job.SetSchedule(e.Schedule, j.cron.Location()) }
	return j.cron.AddJob(spec, job, append(opts[:len(opts):len(opts)], schedule)...)
}

// Wrapper returns a wrapper for a chain of a job's own. schedule is the one that
// the job is added with, by cron.Cron.ScheduleJob. Wrappers that come after it in
// the chain run under the lock, and hide a LockedJob from it. Put cron.Recover
// before it: a job that panics is not done, but one whose panic was recovered
// under the lock is.
func (j *Jobs) Wrapper(name string, schedule cron.Schedule) (cron.JobWrapper, error) {
	if err := once.Check(name); err != nil {
		return nil, err
	}
	if schedule == nil {
		return nil, &redlatch.ConfigError{Field: "schedule", Value: "nil", Bound: "the schedule that the job is added with"}
	}
	return func(job cron.Job) cron.Job {
		return j.runner.Job(name, work(job)).SetSchedule(schedule, j.cron.Location())
	}, nil
}

// Due returns the time for which a job runs, from the context of a Func or
// LockedJob.
func Due(ctx context.Context) time.Time { return once.DueOf(ctx) }

// work returns how to run a job.
func work(job cron.Job) once.Func {
	if l, ok := job.(LockedJob); ok {
		return l.RunLocked
	}
	if c, ok := job.(cron.JobWithContext); ok {
		return func(ctx context.Context, _ *redlatch.Lease) error {
			c.RunWithContext(ctx)
			return nil
		}
	}
	return func(context.Context, *redlatch.Lease) error {
		job.Run()
		return nil
	}
}
