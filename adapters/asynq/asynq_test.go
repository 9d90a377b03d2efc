//go:build unix

package redlatchasynq_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/redlatch/redlatch"
	redlatchasynq "github.com/redlatch/redlatch/adapters/asynq"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// ttl is the time to live of the leader's lock: long, for a busy machine.
const ttl = 8 * time.Second

// group is a group of replicas with the same schedule.
type group struct {
	t     testing.TB
	locks []*servertest.Server // for the locks
	queue *servertest.Server   // for the tasks

	mu       sync.Mutex
	enqueued []string // the replicas that did it, in order
}

func newGroup(t testing.TB) *group {
	t.Helper()
	servers, _ := processes.Servers(t, 3)
	return &group{t: t, locks: servers, queue: servertest.Redis(t, 1)[0]}
}

func (g *group) client() *redlatch.Client { return processes.Client(g.t, g.locks) }

func (g *group) redis() asynq.RedisClientOpt { return asynq.RedisClientOpt{Addr: g.queue.Addr()} }

// scheduler returns the scheduler of a replica, which enqueues a task each
// second.
func (g *group) scheduler(replica string) *asynq.Scheduler {
	s := asynq.NewScheduler(g.redis(), &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel, PostEnqueueFunc: func(_ *asynq.TaskInfo, err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if err == nil {
			g.enqueued = append(g.enqueued, replica)
		}
	}})
	if _, err := s.Register("@every 1s", asynq.NewTask("report", nil)); err != nil {
		g.t.Error(err)
	}
	return s
}

// run runs a replica until stop is called, which returns the error of Run. lead
// is called in each term, before the scheduler starts.
func (g *group) run(replica string, lead func(*redlatch.Lease, redlatchasynq.Scheduler) redlatchasynq.Scheduler) (stop func() error) {
	ctx, cancel := context.WithCancel(g.t.Context())
	locks, ended := g.client(), make(chan error, 1)
	go func() {
		ended <- redlatchasynq.Run(ctx, locks, "scheduler", &redlatch.LockOptions{TTL: ttl}, func(l *redlatch.Lease) (redlatchasynq.Scheduler, error) {
			return lead(l, g.scheduler(replica)), nil
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	g.t.Cleanup(func() { stop() })
	return stop
}

func plain(_ *redlatch.Lease, s redlatchasynq.Scheduler) redlatchasynq.Scheduler { return s }

// by returns which replicas enqueued the tasks from the given one on.
func (g *group) by(from int) (replicas []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.enqueued[min(from, len(g.enqueued)):]
}

// allBy returns the replica that enqueued all these tasks; empty if there are
// several.
func allBy(replicas []string) string {
	for _, r := range replicas {
		if r != replicas[0] {
			return ""
		}
	}
	return replicas[0]
}

func TestOneSchedulerOfTwoEnqueues(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	stop := map[string]func() error{"a": g.run("a", plain), "b": g.run("b", plain)}
	poll.Until(t, "three tasks are enqueued", func() bool { return len(g.by(0)) >= 3 })
	first := allBy(g.by(0))
	if first == "" {
		t.Fatalf("tasks were enqueued by %v", g.by(0))
	}
	if err := stop[first](); err != nil {
		t.Errorf("the leader that was stopped returned %v", err)
	}
	before := len(g.by(0))
	poll.Until(t, "the other one enqueues", func() bool { return len(g.by(before)) >= 2 })
	if second := allBy(g.by(before)); second == "" || second == first {
		t.Errorf("%s was stopped, and then tasks were enqueued by %v", first, g.by(before))
	}
	inspector := asynq.NewInspector(g.redis())
	defer inspector.Close()
	for _, s := range stop {
		s()
	}
	queue, err := inspector.GetQueueInfo("default")
	if err != nil || queue.Pending != len(g.by(0)) {
		t.Errorf("the queue is %+v, %v; the replicas enqueued %v", queue, err, g.by(0))
	}
}

// watched is a scheduler that notes how much is left of its lease when it has
// been shut down.
type watched struct {
	redlatchasynq.Scheduler
	lease *redlatch.Lease
	left  chan time.Duration
}

func (w watched) Shutdown() {
	w.Scheduler.Shutdown()
	w.left <- w.lease.Remaining()
}

// TestSchedulerIsShutDownBeforeTheDeadline freezes the servers of the locks.
// When they are back, the replica leads again, with another scheduler.
func TestSchedulerIsShutDownBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	g, start := newGroup(t), time.Now()
	stall.Watch()
	left, terms := make(chan time.Duration, 10), make(chan redlatch.Token, 10)
	stop := g.run("a", func(l *redlatch.Lease, s redlatchasynq.Scheduler) redlatchasynq.Scheduler {
		terms <- l.Token()
		return watched{s, l, left}
	})
	poll.Until(t, "a task is enqueued", func() bool { return len(g.by(0)) > 0 })
	for _, s := range g.locks {
		s.Freeze()
	}
	if l := <-left; l+stall.Longest(start) <= 0 { // it sets out before the deadline by a timer
		t.Errorf("the scheduler was shut down %v after the deadline", -l)
	}
	for _, s := range g.locks {
		s.Thaw()
	}
	poll.Until(t, "it leads again", func() bool { return len(terms) > 1 })
	if first, second := <-terms, <-terms; second <= first {
		exclusion.Never(t, "the token of the second term is %d, after %d", second, first)
	}
	before := len(g.by(0))
	poll.Until(t, "tasks are enqueued again", func() bool { return len(g.by(before)) > 0 })
	if err := stop(); err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestErrorsAreReturned(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	broken := errors.New("no schedule")
	err := redlatchasynq.Run(t.Context(), g.client(), "scheduler", nil, func(*redlatch.Lease) (redlatchasynq.Scheduler, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v, want that of the schedule", err)
	}
	if err := redlatchasynq.Run(t.Context(), nil, "scheduler", nil, nil); !errors.Is(err, redlatch.ErrConfig) {
		t.Errorf("without a client the error is %v", err)
	}
}
