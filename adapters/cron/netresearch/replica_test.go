package redlatchnetresearch_test

import (
	"context"
	"testing"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/redlatch/redlatch"
	redlatchnetresearch "github.com/redlatch/redlatch/adapters/cron/netresearch"
	"github.com/redlatch/redlatch/internal/test/jobtest"
)

// start starts the scheduler of a replica, with one job.
func start(r *jobtest.Replica) (stop func(), err error) {
	ticks := func(j cron.Job) cron.Job {
		return cron.FuncJob(func() {
			r.Note(jobtest.Tick, r.Due())
			j.Run()
		})
	}
	c := cron.New(cron.WithSeconds(), cron.WithChain(ticks), cron.WithClock(clock{r}))
	if r.Sabotage != "" {
		_, err = c.AddFunc(jobtest.Spec, r.Sabotaged)
	} else {
		var jobs *redlatchnetresearch.Jobs
		if jobs, err = redlatchnetresearch.New(c, r.Locks, &redlatchnetresearch.Options{Lock: r.Lock}); err != nil {
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

func job(r *jobtest.Replica) redlatchnetresearch.Func {
	return func(ctx context.Context, _ *redlatch.Lease) error {
		r.Run(redlatchnetresearch.Due(ctx))
		return nil
	}
}

// clock is the clock of a replica, which may be behind.
type clock struct{ r *jobtest.Replica }

func (c clock) Now() time.Time { return c.r.Now() }

func (c clock) NewTimer(d time.Duration) cron.Timer {
	t := &timer{r: c.r, c: make(chan time.Time, 1)}
	t.Timer = time.AfterFunc(d, func() { t.c <- c.r.Now() })
	return t
}

type timer struct {
	*time.Timer
	r *jobtest.Replica
	c chan time.Time
}

func (t *timer) C() <-chan time.Time { return t.c }

// mortal is a job that a replica can die in.
var mortal = jobtest.Options{Lock: redlatch.LockOptions{TTL: 3 * time.Second}, Work: 200 * time.Millisecond}

// The survivor runs what the other one had begun, and all that was due while
// the lock of the dead was still held.
func TestKillOfTheReplicaThatRunsLosesNoRun(t *testing.T) { jobtest.KillLosesNoRun(t, mortal, start) }

func TestReplicaWhoseClockIsBehindDoesNotRunAgain(t *testing.T) {
	jobtest.Holds(t, jobtest.Options{Late: time.Second}, start)
}

func TestSabotagedReplicasAreFoundOut(t *testing.T) { jobtest.SabotageIsFoundOut(t, start) }
