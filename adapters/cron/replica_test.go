package redlatchcron_test

import (
	"context"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	redlatchcron "github.com/redlatch/redlatch/adapters/cron"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/jobtest"
)

var must = check.Must

// start starts the scheduler of a replica, with one job.
func start(r *jobtest.Replica) (stop func(), err error) {
	ticks := func(j cron.Job) cron.Job {
		return cron.FuncJob(func() {
			r.Note(jobtest.Tick, r.Due())
			j.Run()
		})
	}
	c := cron.New(cron.WithSeconds(), cron.WithChain(ticks))
	if r.Late > 0 {
		err = addLate(c, r)
	} else {
		var jobs *redlatchcron.Jobs
		if jobs, err = redlatchcron.New(c, r.Locks, &redlatchcron.Options{Lock: r.Lock}); err != nil {
			return nil, err
		}
		_, err = jobs.AddFunc(jobtest.Job, jobtest.Spec, job(r))
	}
	if err != nil {
		return nil, err
	}
	c.Start()
	return func() { <-c.Stop().Done() }, nil
}

func job(r *jobtest.Replica) redlatchcron.Func {
	return func(ctx context.Context, _ *redlatch.Lease) error {
		r.Run(redlatchcron.Due(ctx))
		return nil
	}
}

// late is the schedule of a machine whose clock is behind, by the clock of the
// others.
type late struct {
	cron.Schedule
	by time.Duration
}

func (s late) Next(t time.Time) time.Time { return s.Schedule.Next(t.Add(-s.by)).Add(s.by) }

// locked is a job that knows its lock.
type locked redlatchcron.Func

func (f locked) Run() { panic("runs without its lock") }
func (f locked) RunLocked(ctx context.Context, lease *redlatch.Lease) error {
	return f(ctx, lease)
}

// addLate adds the job by way of a wrapper.
func addLate(c *cron.Cron, r *jobtest.Replica) error {
	jobs, err := redlatchcron.New(c, r.Locks, &redlatchcron.Options{Lock: r.Lock})
	if err != nil {
		return err
	}
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(jobtest.Spec)
	if err != nil {
		return err
	}
	wrapper, err := jobs.Wrapper(jobtest.Job, schedule)
	if err != nil {
		return err
	}
	c.Schedule(late{schedule, r.Late}, cron.NewChain(cron.Recover(cron.DefaultLogger), wrapper).Then(locked(job(r))))
	return nil
}

// mortal is a job that a replica can die in.
var mortal = jobtest.Options{Lock: redlatch.LockOptions{TTL: 3 * time.Second}, Work: 200 * time.Millisecond}

// The survivor runs what the other one had begun, and all that was due while
// the lock of the dead was still held.
func TestKillOfTheReplicaThatRunsLosesNoRun(t *testing.T) { jobtest.KillLosesNoRun(t, mortal, start) }

func TestReplicaWhoseClockIsBehindDoesNotRunAgain(t *testing.T) {
	jobtest.Holds(t, jobtest.Options{Late: time.Second}, start)
}
