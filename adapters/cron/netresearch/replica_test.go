//go:build unix

package redlatchnetresearch_test

import (
	"context"
	"testing"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/redlatch/redlatch"
	redlatchnetresearch "github.com/redlatch/redlatch/adapters/cron/netresearch"
	"github.com/redlatch/redlatch/internal/test/jobtest"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) {
	processes.Main(m, func() { jobtest.Main(start) })
}

// start starts the scheduler of a replica, with one job.
func start(r *jobtest.Replica) (stop func(), err error) {
	ticks := func(j cron.Job) cron.Job {
		return cron.FuncJob(func() {
			r.Ticked(r.Due())
			j.Run()
		})
	}
	c := cron.New(cron.WithSeconds(), cron.WithChain(ticks), cron.WithClock(clock{r}))
	if r.Sabotage != "" {
		_, err = c.AddFunc(jobtest.Spec, r.Sabotaged)
	} else {
		var jobs *redlatchnetresearch.Jobs
		if jobs, err = redlatchnetresearch.New(c, r.Locks, &redlatchnetresearch.Options{Lock: r.Lock()}); err != nil {
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

// The survivor runs what the other one had begun, and all that was due while
// the lock of the dead was still held.
func TestKillOfTheReplicaThatRunsLosesNoRun(t *testing.T) {
	jobtest.OnServers(t, func(t testing.TB, servers int) { jobtest.KillLosesNoRun(t, servers) })
}

func TestReplicaWhoseClockIsBehindDoesNotRunAgain(t *testing.T) {
	jobtest.OnServers(t, func(t testing.TB, servers int) { jobtest.LateReplicaDoesNotRunAgain(t, servers) })
}

func TestSabotagedReplicasAreFoundOut(t *testing.T) { jobtest.SabotageIsFoundOut(t) }
