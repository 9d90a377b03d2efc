package redlatchgocron_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/redlatch/redlatch"
	redlatchgocron "github.com/redlatch/redlatch/adapters/gocron"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/jobtest"
)

var must = check.Must

// duration is the mode of a job that counts from the start.
const duration = "duration"

// start starts the scheduler of a replica, with one job.
func start(r *jobtest.Replica) (stop func(), err error) {
	l, err := redlatchgocron.NewLocker(r.Locks, &redlatchgocron.Options{Lock: r.Lock})
	if err != nil {
		return nil, err
	}
	ticks := &ticking{r: r, Locker: l}
	s, err := gocron.NewScheduler(gocron.WithClock(clock{clockwork.NewRealClock(), r}), gocron.WithDistributedLocker(ticks))
	if err != nil {
		return nil, err
	}
	l.Bind(s)
	what := gocron.CronJob(jobtest.Spec, true)
	if r.Mode == duration {
		what = gocron.DurationJob(jobtest.Step)
	}
	_, err = s.NewJob(what, gocron.NewTask(func() { r.Run(ticks.due) }), gocron.WithName(jobtest.Job))
	s.Start()
	return func() { s.Shutdown() }, err
}

// ticking notes when a scheduler is due to run a job, and for which time it has the
// lock. It notes nothing if the scheduler shut down meanwhile.
type ticking struct {
	r *jobtest.Replica
	gocron.Locker
	due time.Time // written and read under the lock
}

func (l *ticking) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	due := l.r.Due()
	lock, err := l.Locker.Lock(ctx, key)
	if ctx.Err() == nil || err == nil {
		l.r.Note(jobtest.Tick, due)
	}
	if err == nil {
		l.due = due
	}
	return lock, err
}

// clock is the clock of a replica, which may be behind.
type clock struct {
	clockwork.Clock
	r *jobtest.Replica
}

func (c clock) Now() time.Time { return c.r.Now() }

// mortal is a job that a replica can die in.
func mortal(wait time.Duration) jobtest.Options {
	return jobtest.Options{Lock: redlatch.LockOptions{TTL: 3 * time.Second, Wait: wait}, Work: 200 * time.Millisecond}
}

func TestKillOfTheReplicaThatRunsHasTheOtherGoOn(t *testing.T) {
	jobtest.KillHasTheOtherGoOn(t, mortal(0), start)
}

// With Wait, the survivor runs what the other one had begun.
func TestKillOfTheReplicaThatRunsLosesNoRunIfOthersWait(t *testing.T) {
	jobtest.KillLosesNoRun(t, mortal(50*time.Second), start)
}

func TestReplicaWhoseClockIsBehindDoesNotRunAgain(t *testing.T) {
	jobtest.Holds(t, jobtest.Options{Late: time.Second}, start)
}

// Each replica counts the periods from its own start, and yet there is one run
// in each.
func TestReplicasThatCountFromTheirStartRunOnceInAPeriod(t *testing.T) {
	jobtest.Runs(t, jobtest.Options{Mode: duration, Late: 700 * time.Millisecond}, start)
}
