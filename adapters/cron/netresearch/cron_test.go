//go:build unix

package redlatchnetresearch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/netresearch/go-cron"

	"github.com/redlatch/redlatch"
	redlatchnetresearch "github.com/redlatch/redlatch/adapters/cron/netresearch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// patience is far longer than any step of a test takes.
const patience = 30 * time.Second

func newJobs(t *testing.T, addresses []string, opts ...cron.Option) (*cron.Cron, *redlatchnetresearch.Jobs) {
	t.Helper()
	locks, err := redlatch.Open(strings.Join(addresses, ","), &redlatch.Options{AssumeFresh: true, NodeTimeout: 3 * time.Second})
	check.Must(t, err)
	t.Cleanup(func() { locks.Close() })
	c := cron.New(opts...)
	jobs, err := redlatchnetresearch.New(c, locks, nil)
	check.Must(t, err)
	return c, jobs
}

func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
	}
	return v
}

// The job is a context's own, so it ends when the scheduler stops. It is done:
// a job of this kind has no error.
func TestStopEndsTheContextOfAJob(t *testing.T) {
	t.Parallel()
	c, jobs := newJobs(t, servertest.Addresses(servertest.Redis(t, 1)))
	began, due := make(chan struct{}), make(chan time.Time, 1)
	_, err := jobs.AddJob("report", "@every 1s", cron.FuncJobWithContext(func(ctx context.Context) {
		close(began)
		<-ctx.Done()
		due <- redlatchnetresearch.Due(ctx)
	}), cron.WithRunOnce())
	check.Must(t, err)
	c.Start()
	await(t, began, "the job begins")
	stopped := c.Stop()
	if got := await(t, due, "the job ends"); got.IsZero() {
		t.Error("the job does not know for which time it runs")
	}
	await(t, stopped.Done(), "the scheduler stops")
}

// A replica that starts runs at once what was not run at its time, and nothing
// that was.
func TestReplicaThatStartsCatchesUp(t *testing.T) {
	t.Parallel()
	nodes := servertest.Addresses(servertest.Redis(t, 1))
	ran := make(chan time.Time, 2)
	for range 2 {
		complete := make(chan struct{}, 1)
		c, jobs := newJobs(t, nodes, cron.WithObservability(cron.ObservabilityHooks{
			OnJobComplete: func(cron.EntryID, string, time.Duration, any) { complete <- struct{}{} },
		}))
		_, err := jobs.AddFunc("report", "CRON_TZ=UTC 0 0 1 1 *", func(ctx context.Context, _ *redlatch.Lease) error {
			ran <- redlatchnetresearch.Due(ctx)
			return nil
		}, cron.WithRunImmediately(), cron.WithName("yearly"))
		check.Must(t, err)
		c.Start()
		await(t, complete, "the job is complete")
		if !c.EntryByName("yearly").Valid() {
			t.Error("the entry does not have the options")
		}
		await(t, c.Stop().Done(), "the scheduler stops")
	}
	if len(ran) != 1 {
		t.Fatalf("the job ran %d times, want once", len(ran))
	}
	if due := <-ran; due.UTC().Format("01-02 15:04:05") != "01-01 00:00:00" {
		t.Errorf("it ran for %v, want the last first of January", due)
	}
}

func TestJobThatReturnsAnErrorIsNotDone(t *testing.T) {
	t.Parallel()
	nodes := servertest.Addresses(servertest.Redis(t, 1))
	ran := 0
	for _, err := range []error{errors.New("no paper"), nil, nil} {
		c, jobs := newJobs(t, nodes)
		id, addErr := jobs.AddFunc("report", "0 0 1 1 *", func(context.Context, *redlatch.Lease) error {
			ran++
			return err
		})
		if addErr != nil {
			t.Fatal(addErr)
		}
		c.Entry(id).Run()
	}
	if ran != 2 {
		t.Errorf("it ran %d times, want one that failed and one that did not", ran)
	}
}

// A job of a chain of its own runs once, too.
func TestWrappedJobRunsOnOneReplica(t *testing.T) {
	t.Parallel()
	nodes := servertest.Addresses(servertest.Redis(t, 1))
	schedule, err := cron.ParseStandard("0 0 1 1 *")
	check.Must(t, err)
	ran := 0
	for range 2 {
		_, jobs := newJobs(t, nodes)
		wrapper, err := jobs.Wrapper("report", schedule)
		check.Must(t, err)
		wrapper(cron.FuncJob(func() { ran++ })).Run()
		if _, err := jobs.Wrapper("report", nil); !errors.Is(err, redlatch.ErrConfig) {
			t.Errorf("without a schedule: %v", err)
		}
	}
	if ran != 1 {
		t.Errorf("the job ran %d times, want once", ran)
	}
}
