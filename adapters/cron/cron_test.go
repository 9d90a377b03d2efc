//go:build unix

package redlatchcron_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/redlatch/redlatch"
	redlatchcron "github.com/redlatch/redlatch/adapters/cron"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/written"
)

// yearly is due so rarely that tests run it by hand.
const yearly = "0 0 1 1 *"

// patience is far longer than any step of a test takes.
const patience = 30 * time.Second

// replica is a scheduler with its own client, in this process.
type replica struct {
	*redlatchcron.Jobs
	cron  *cron.Cron
	locks *redlatch.Client
	log   written.Text

	mu     sync.Mutex
	errors []error
}

func newReplica(t *testing.T, addresses []string, opts redlatchcron.Options) *replica {
	t.Helper()
	locks, err := redlatch.Open(strings.Join(addresses, ","), &redlatch.Options{AssumeFresh: true, NodeTimeout: 3 * time.Second})
	must(t, err)
	t.Cleanup(func() { locks.Close() })
	r := &replica{cron: cron.New(), locks: locks}
	opts.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	opts.OnError = func(_ string, _ time.Time, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errors = append(r.errors, err)
	}
	if r.Jobs, err = redlatchcron.New(r.cron, locks, &opts); err != nil {
		t.Fatal(err)
	}
	return r
}

// now runs an entry as the scheduler does when it is due.
func (r *replica) now(t *testing.T, id cron.EntryID, err error) {
	t.Helper()
	must(t, err)
	r.cron.Entry(id).WrappedJob.Run()
}

func servers(t *testing.T, n int) []string { return servertest.Addresses(servertest.Redis(t, n)) }

func TestJobThatFailedRunsOnAReplicaThatWaits(t *testing.T) {
	t.Parallel()
	nodes := servers(t, 3)
	a, b := newReplica(t, nodes, redlatchcron.Options{}), newReplica(t, nodes, redlatchcron.Options{})
	began, waits, broken := make(chan struct{}), make(chan struct{}), errors.New("no paper")
	id, err := b.AddJob("report", yearly, cron.FuncJob(func() { close(waits) }))
	must(t, err)
	go func() {
		<-began
		b.cron.Entry(id).WrappedJob.Run()
	}()
	id, err = a.AddFunc("report", yearly, func(ctx context.Context, lease *redlatch.Lease) error {
		close(began)
		select {
		case <-lease.Contended():
		case <-time.After(patience):
			t.Error("nobody waits for the lock")
		}
		return broken
	})
	a.now(t, id, err)
	select {
	case <-waits:
	case <-time.After(patience):
		t.Error("the other replica does not run the job")
	}
	if len(a.errors) != 1 || !errors.Is(a.errors[0], broken) || !strings.Contains(a.log.String(), "no paper") {
		t.Errorf("the errors are %v, and the log is %s", a.errors, a.log.String())
	}
}

func TestJobThatPanickedIsNotDone(t *testing.T) {
	t.Parallel()
	nodes := servers(t, 1)
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
	t.Parallel()
	nodes := servers(t, 1)
	r := newReplica(t, nodes, redlatchcron.Options{Lock: redlatch.LockOptions{Wait: redlatch.NoWait}})
	other := newReplica(t, nodes, redlatchcron.Options{})
	lease, err := other.locks.Lock(t.Context(), "report", nil)
	must(t, err)
	defer lease.Release(context.Background())
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
	t.Parallel()
	nodes := servers(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	r := newReplica(t, nodes, redlatchcron.Options{Context: ctx})
	other := newReplica(t, nodes, redlatchcron.Options{})
	lease, err := other.locks.Lock(t.Context(), "report", nil)
	must(t, err)
	defer lease.Release(context.Background())
	if _, err := r.AddJob("report", "@every 1s", cron.FuncJob(func() { t.Error("it runs without its lock") })); err != nil {
		t.Fatal(err)
	}
	r.cron.Start()
	select {
	case <-lease.Contended():
	case <-time.After(patience):
		t.Fatal("nobody waits for the lock")
	}
	stopped := r.cron.Stop()
	if stopped.Err() != nil {
		t.Error("the scheduler does not wait for the job")
	}
	cancel()
	select {
	case <-stopped.Done():
	case <-time.After(patience):
		t.Error("the job waits although its context has ended")
	}
	if !strings.Contains(r.log.String(), "the scheduler stops") {
		t.Errorf("the log is %q", r.log.String())
	}
}

func TestBadArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	nodes := servers(t, 1)
	r := newReplica(t, nodes, redlatchcron.Options{})
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
