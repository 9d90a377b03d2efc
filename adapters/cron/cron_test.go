package redlatchcron_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	redlatchcron "github.com/redlatch/redlatch/adapters/cron"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/store/memory"
)

// yearly is due so rarely that tests run it by hand.
const yearly = "0 0 1 1 *"

// replica is a scheduler with its own client, in this process.
type replica struct {
	*redlatchcron.Jobs
	cron  *cron.Cron
	locks *redlatch.Client
	log   written.Text

	mu     sync.Mutex
	errors []error
}

func newReplica(t *testing.T, nodes []redlatch.Node, opts redlatchcron.Options) *replica {
	t.Helper()
	r := &replica{cron: cron.New(), locks: locktest.NewClient(t, nodes, redlatch.Options{})}
	opts.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	opts.OnError = func(_ string, _ time.Time, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errors = append(r.errors, err)
	}
	var err error
	r.Jobs, err = redlatchcron.New(r.cron, r.locks, &opts)
	must(t, err)
	return r
}

// now runs an entry as the scheduler does when it is due.
func (r *replica) now(t *testing.T, id cron.EntryID, err error) {
	t.Helper()
	must(t, err)
	r.cron.Entry(id).WrappedJob.Run()
}

func TestJobThatFailedRunsOnAReplicaThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		a, b := newReplica(t, nodes, redlatchcron.Options{}), newReplica(t, nodes, redlatchcron.Options{})
		began, ran, broken := make(chan struct{}), make(chan struct{}), errors.New("no paper")
		id, err := b.AddJob("report", yearly, cron.FuncJob(func() { close(ran) }))
		must(t, err)
		go func() {
			<-began
			b.cron.Entry(id).WrappedJob.Run()
		}()
		id, err = a.AddFunc("report", yearly, func(_ context.Context, lease *redlatch.Lease) error {
			close(began)
			<-lease.Contended()
			return broken
		})
		a.now(t, id, err)
		<-ran
		if len(a.errors) != 1 || !errors.Is(a.errors[0], broken) || !strings.Contains(a.log.String(), "no paper") {
			t.Errorf("the errors are %v, and the log is %s", a.errors, a.log.String())
		}
	})
}

func TestJobThatPanickedIsNotDone(t *testing.T) {
	nodes := memory.Nodes(1)
	a, b := newReplica(t, nodes, redlatchcron.Options{}), newReplica(t, nodes, redlatchcron.Options{})
	schedule, err := cron.ParseStandard(yearly)
	must(t, err)
	wrapper, err := a.Wrapper("report", schedule)
	must(t, err)
	silent := cron.DiscardLogger
	cron.NewChain(cron.Recover(silent), wrapper).Then(cron.FuncJob(func() { panic("oh") })).Run()
	ran := 0
	for range 2 {
		id, err := b.AddJob("report", yearly, cron.FuncJob(func() { ran++ }))
		b.now(t, id, err)
	}
	if ran != 1 {
		t.Errorf("after a panic the job runs %d times, want 1", ran)
	}
}

func TestJobIsSkippedAndLoggedIfItsLockCannotBeHad(t *testing.T) {
	nodes := memory.Nodes(1)
	r := newReplica(t, nodes, redlatchcron.Options{Lock: redlatch.LockOptions{Wait: redlatch.NoWait}})
	locktest.MustLock(t, locktest.NewClient(t, nodes, redlatch.Options{}), "report", redlatch.LockOptions{})
	id, err := r.AddJob("report", yearly, cron.FuncJob(func() { t.Error("it runs without its lock") }))
	r.now(t, id, err)
	if len(r.errors) != 1 || !errors.Is(r.errors[0], redlatch.ErrHeld) {
		t.Errorf("the errors are %v, want ErrHeld", r.errors)
	}
	if log := r.log.String(); !strings.Contains(log, "skipped") || !strings.Contains(log, "job=report") {
		t.Errorf("the log is %q", log)
	}
}

func TestContextEndsTheWaitOfAReplicaThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(1)
		ctx, cancel := context.WithCancel(t.Context())
		r := newReplica(t, nodes, redlatchcron.Options{Context: ctx})
		lease := locktest.MustLock(t, locktest.NewClient(t, nodes, redlatch.Options{}), "report", redlatch.LockOptions{})
		_, err := r.AddJob("report", "@every 1s", cron.FuncJob(func() { t.Error("it runs without its lock") }))
		must(t, err)
		r.cron.Start()
		<-lease.Contended()
		stopped := r.cron.Stop()
		synctest.Wait()
		if stopped.Err() != nil {
			t.Error("the scheduler does not wait for the job")
		}
		cancel()
		<-stopped.Done()
		if !strings.Contains(r.log.String(), "the scheduler stops") {
			t.Errorf("the log is %q", r.log.String())
		}
	})
}

func TestBadArgumentsAreNamed(t *testing.T) {
	r := newReplica(t, memory.Nodes(1), redlatchcron.Options{})
	for says, err := range map[string]error{
		"cron is":  second(redlatchcron.New(nil, r.locks, nil)),
		"locks":    second(redlatchcron.New(r.cron, nil, nil)),
		"Slots":    second(redlatchcron.New(r.cron, r.locks, &redlatchcron.Options{Lock: redlatch.LockOptions{Slots: 2}})),
		"Shared":   second(redlatchcron.New(r.cron, r.locks, &redlatchcron.Options{Lock: redlatch.LockOptions{Shared: true}})),
		"name":     second(r.AddJob("", yearly, cron.FuncJob(func() {}))),
		"schedule": second(r.Wrapper("report", nil)),
	} {
		if !errors.Is(err, redlatch.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want one that names %q", err, says)
		}
	}
	if _, err := r.AddJob("report", "whenever", cron.FuncJob(func() {})); err == nil || errors.Is(err, redlatch.ErrConfig) {
		t.Errorf("a bad spec gives %v, want the scheduler's error", err)
	}
}

func second[T any](_ T, err error) error { return err }
