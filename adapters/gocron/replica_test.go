package redlatchgocron_test

import (
	"context"
	"sync"
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

// The modes of a replica.
const (
	elector  = "elector"
	duration = "duration" // a locker, and a job that counts from the start
)

// start starts the scheduler of a replica, with one job.
func start(r *jobtest.Replica) (stop func(), err error) {
	seen := &monitor{}
	opts := []gocron.SchedulerOption{gocron.WithClock(clock{clockwork.NewRealClock(), r}), gocron.WithSchedulerMonitor(seen)}
	var s gocron.Scheduler
	resign := func() {}
	switch {
	case r.Sabotage == jobtest.NoLock:
		s, err = gocron.NewScheduler(opts...)
	case r.Sabotage == jobtest.NoOnce:
		s, err = gocron.NewScheduler(append(opts, gocron.WithDistributedLocker(ticking{r, plain{r}}))...)
	case r.Mode == elector:
		var e *redlatchgocron.Elector
		if e, err = redlatchgocron.NewElector(r.Locks, "scheduler", &redlatchgocron.ElectorOptions{Lock: r.Lock}); err != nil {
			return nil, err
		}
		resign = func() { e.Close() }
		s, err = gocron.NewScheduler(append(opts, gocron.WithDistributedElector(tickingElector{r, e}))...)
	default:
		var l *redlatchgocron.Locker
		if l, err = redlatchgocron.NewLocker(r.Locks, &redlatchgocron.Options{Lock: r.Lock}); err != nil {
			return nil, err
		}
		s, err = gocron.NewScheduler(append(opts, gocron.WithDistributedLocker(ticking{r, l}))...)
		l.Bind(s)
	}
	if err != nil {
		return nil, err
	}
	what, how := gocron.CronJob(jobtest.Spec, true), []gocron.JobOption{gocron.WithName(jobtest.Job)}
	switch r.Mode {
	case duration:
		what = gocron.DurationJob(jobtest.Step)
	case elector: // the leader may run a job beside itself
		how = append(how, gocron.WithSingletonMode(gocron.LimitModeReschedule))
	}
	_, err = s.NewJob(what, gocron.NewTask(func() {
		due := seen.due().Truncate(jobtest.Step)
		if r.Mode == elector {
			due = r.Due() // the monitor still has the times at which another led
		}
		if r.Sabotage == jobtest.NoLock {
			r.Note(jobtest.Tick, due)
		}
		r.Run(due)
	}), how...)
	s.Start()
	return func() {
		s.Shutdown()
		resign()
	}, err
}

// ticking notes when a scheduler is due to run a job. It does not, if the
// scheduler shut down meanwhile.
type ticking struct {
	r *jobtest.Replica
	gocron.Locker
}

func (l ticking) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	due := l.r.Due()
	lock, err := l.Locker.Lock(ctx, key)
	if ctx.Err() == nil || err == nil {
		l.r.Note(jobtest.Tick, due)
	}
	return lock, err
}

// tickingElector is the same for an elector.
type tickingElector struct {
	r *jobtest.Replica
	gocron.Elector
}

func (e tickingElector) IsLeader(ctx context.Context) error {
	e.r.Note(jobtest.Tick, e.r.Due())
	return e.Elector.IsLeader(ctx)
}

// plain is a locker without what the adapter adds to a lock.
type plain struct{ r *jobtest.Replica }

func (p plain) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := p.r.Locks.TryLock(ctx, key, &p.r.Options.Lock)
	return plainLock{lease}, err
}

type plainLock struct{ *redlatch.Lease }

func (l plainLock) Unlock(ctx context.Context) error { return l.Release(context.WithoutCancel(ctx)) }

// clock is the clock of a replica, which may be behind.
type clock struct {
	clockwork.Clock
	r *jobtest.Replica
}

func (c clock) Now() time.Time { return c.r.Now() }

// monitor remembers for which time the scheduler started the job.
type monitor struct {
	mu   sync.Mutex
	last time.Time
}

func (m *monitor) due() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *monitor) JobSchedulingDelay(_ gocron.Job, scheduled, _ time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = scheduled
}

func (*monitor) SchedulerStarted()                          {}
func (*monitor) SchedulerStopped()                          {}
func (*monitor) SchedulerShutdown()                         {}
func (*monitor) JobRegistered(gocron.Job)                   {}
func (*monitor) JobUnregistered(gocron.Job)                 {}
func (*monitor) JobStarted(gocron.Job)                      {}
func (*monitor) JobRunning(gocron.Job)                      {}
func (*monitor) JobFailed(gocron.Job, error)                {}
func (*monitor) JobCompleted(gocron.Job)                    {}
func (*monitor) JobExecutionTime(gocron.Job, time.Duration) {}
func (*monitor) ConcurrencyLimitReached(string, gocron.Job) {}

// mortal is a job that a replica can die in.
func mortal(mode string, wait time.Duration) jobtest.Options {
	return jobtest.Options{Mode: mode, Lock: redlatch.LockOptions{TTL: 3 * time.Second, Wait: wait}, Work: 200 * time.Millisecond}
}

func TestKillOfTheReplicaThatRunsHasTheOtherGoOn(t *testing.T) {
	jobtest.KillHasTheOtherGoOn(t, mortal("", 0), start)
}

// With Wait, the survivor runs what the other one had begun.
func TestKillOfTheReplicaThatRunsLosesNoRunIfOthersWait(t *testing.T) {
	jobtest.KillLosesNoRun(t, mortal("", 50*time.Second), start)
}

func TestKillOfTheLeaderHasTheOtherLead(t *testing.T) {
	jobtest.KillHasTheOtherGoOn(t, mortal(elector, 0), start)
}

func TestReplicaWhoseClockIsBehindDoesNotRunAgain(t *testing.T) {
	jobtest.Holds(t, jobtest.Options{Late: time.Second}, start)
}

// Each replica counts the periods from its own start, and yet there is one run
// in each.
func TestReplicasThatCountFromTheirStartRunOnceInAPeriod(t *testing.T) {
	jobtest.Runs(t, jobtest.Options{Mode: duration, Late: 700 * time.Millisecond}, start)
}

func TestSabotagedReplicasAreFoundOut(t *testing.T) { jobtest.SabotageIsFoundOut(t, start) }
