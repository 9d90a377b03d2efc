package redlatchgocron_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/redlatch/redlatch"
	redlatchgocron "github.com/redlatch/redlatch/adapters/gocron"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/store/memory"
)

// day is the occurrence of a test that runs no scheduler.
func day(string, time.Time) string { return "2026-11-16" }

func newLocker(t *testing.T, nodes []redlatch.Node, opts redlatchgocron.Options) *redlatchgocron.Locker {
	t.Helper()
	l, err := redlatchgocron.NewLocker(locktest.NewClient(t, nodes, redlatch.Options{}), &opts)
	must(t, err)
	return l
}

func mustLock(t *testing.T, l *redlatchgocron.Locker, key string) gocron.Lock {
	t.Helper()
	lock, err := l.Lock(t.Context(), key)
	must(t, err)
	return lock
}

func TestLoserIsRefusedWhileTheJobRunsAndAfterwards(t *testing.T) {
	t.Parallel()
	nodes, opts := memory.Nodes(3), redlatchgocron.Options{Occurrence: day}
	a, b := newLocker(t, nodes, opts), newLocker(t, nodes, opts)
	lock := mustLock(t, a, "report")
	lease := a.Lease("report")
	if lease == nil || lease.Token() == 0 {
		t.Fatalf("the lease of the job is %v", lease)
	}
	if _, err := b.Lock(t.Context(), "report"); !errors.Is(err, redlatch.ErrHeld) {
		t.Fatalf("the loser gets %v, want ErrHeld", err)
	}
	if b.Lease("report") != nil {
		t.Error("the loser has a lease")
	}
	must(t, lock.Unlock(t.Context()))
	if err := lock.Unlock(t.Context()); err != nil {
		t.Errorf("the second Unlock gives %v", err)
	}
	if a.Lease("report") != nil {
		t.Error("the job has ended, and still has a lease")
	}
	for _, l := range []*redlatchgocron.Locker{a, b} {
		if _, err := l.Lock(t.Context(), "report"); !errors.Is(err, redlatchgocron.ErrDone) || !strings.Contains(err.Error(), `"report" of 2026-11-16`) {
			t.Errorf("after the job, Lock gives %v, want ErrDone", err)
		}
	}
	mustLock(t, b, "another").Unlock(t.Context())
}

// The context of a scheduler that shuts down has ended when its jobs unlock.
func TestUnlockReleasesAndNotesThoughItsContextHasEnded(t *testing.T) {
	t.Parallel()
	nodes, opts := memory.Nodes(1), redlatchgocron.Options{Occurrence: day}
	a, b := newLocker(t, nodes, opts), newLocker(t, nodes, opts)
	ctx, cancel := context.WithCancel(t.Context())
	lock, err := a.Lock(ctx, "report")
	must(t, err)
	cancel()
	must(t, lock.Unlock(ctx))
	if _, err := b.Lock(t.Context(), "report"); !errors.Is(err, redlatchgocron.ErrDone) {
		t.Errorf("Lock gives %v, want ErrDone", err)
	}
	if _, err := a.Lock(ctx, "another"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended, Lock gives %v", err)
	}
}

func TestLossAndSkippedJobsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 1)
		var log written.Text
		l := newLocker(t, nodes, redlatchgocron.Options{Occurrence: day, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		lock := mustLock(t, l, "report")
		links.Drop("report")
		<-l.Lease("report").Context().Done()
		locktest.WantErr(t, lock.Unlock(t.Context()), redlatch.ErrLost)
		mustLock(t, l, "report").Unlock(t.Context()) // it was not noted as run
		links.Cut()
		_, err := l.Lock(t.Context(), "another")
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		for _, want := range []string{"job=report.*is lost", "skipped.*job=another"} {
			if !regexp.MustCompile(want).MatchString(log.String()) {
				t.Errorf("the log has no %s: %s", want, log.String())
			}
		}
	})
}

// A run by hand is not the run that is scheduled, and takes nothing away from
// it.
func TestRunByHandIsNotTheRunThatIsScheduled(t *testing.T) {
	t.Parallel()
	nodes := memory.Nodes(1)
	l := newLocker(t, nodes, redlatchgocron.Options{})
	s, err := l.NewScheduler(gocron.WithLocation(time.UTC))
	must(t, err)
	defer s.Shutdown()
	ran := make(chan *redlatch.Lease, 1)
	j, err := s.NewJob(gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(1, 15), gocron.NewAtTimes(gocron.NewAtTime(3, 0, 0))),
		gocron.NewTask(func() { ran <- l.Lease("report") }), gocron.WithName("report"))
	must(t, err)
	s.Start()
	must(t, j.RunNow())
	if lease := <-ran; lease == nil {
		t.Error("it runs without its lock")
	}
	next, err := j.NextRun()
	must(t, err)
	client := locktest.NewClient(t, nodes, redlatch.Options{})
	if done, _, err := client.Completed(t.Context(), "report", next.UTC().Format(time.RFC3339Nano)); done || err != nil {
		t.Errorf("after a run by hand, the run of %v is done: %v, %v", next, done, err)
	}
}

// Without its scheduler, a locker takes the second for the time, and says so.
func TestLockerWithoutItsSchedulerWarnsOnce(t *testing.T) {
	t.Parallel()
	var log written.Text
	l := newLocker(t, memory.Nodes(1), redlatchgocron.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mustLock(t, l, "report").Unlock(t.Context())
	mustLock(t, l, "another").Unlock(t.Context())
	if n := strings.Count(log.String(), "knows no schedule"); n != 1 {
		t.Errorf("it warns %d times: %s", n, log.String())
	}
	s, err := gocron.NewScheduler()
	must(t, err)
	defer s.Shutdown()
	l.Bind(s)
	if _, err := l.Lock(t.Context(), "report"); !errors.Is(err, gocron.ErrJobNotFound) {
		t.Errorf("for a job that the scheduler does not have, Lock gives %v", err)
	}
}

func TestBadArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{})
	second := func(_ any, err error) error { return err }
	for _, c := range []struct {
		says string
		err  error
	}{
		{"locks", second(redlatchgocron.NewLocker(nil, nil))},
		{"Slots", second(redlatchgocron.NewLocker(locks, &redlatchgocron.Options{Lock: redlatch.LockOptions{Slots: 2}}))},
		{"Shared", second(redlatchgocron.NewElector(locks, "x", &redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{Shared: true}}))},
		{"name", second(redlatchgocron.NewElector(locks, "", nil))},
		{"Wait", second(redlatchgocron.NewElector(locks, "x", &redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{Wait: time.Second}}))},
		{"NoWait", second(redlatchgocron.NewElector(locks, "x", &redlatchgocron.ElectorOptions{Lock: redlatch.LockOptions{Wait: redlatch.NoWait}}))},
	} {
		if !errors.Is(c.err, redlatch.ErrConfig) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("the error is %v, want one that names %q", c.err, c.says)
		}
	}
}
