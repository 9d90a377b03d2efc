package direct_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/redis/direct"
)

var must = check.Must

// watched returns a client of one server, and its driver.
func watched(t testing.TB, s *servertest.Server, by observe.Observer) (*redlatch.Client, *direct.Watched) {
	t.Helper()
	n, w, err := direct.Watch(s.URL())
	must(t, err)
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{AssumeFresh: true, NodeTimeout: 5 * time.Second, Observer: by})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c, w
}

func pair(c *redlatch.Client, name string) error {
	l, err := c.Lock(context.Background(), name, nil)
	if err == nil {
		err = l.Release(context.Background())
	}
	return err
}

// untilCallersRead makes pairs until callers read.
func untilCallersRead(t testing.TB, c *redlatch.Client, n *direct.Watched) {
	t.Helper()
	poll.Until(t, "a caller reads its replies", func() bool {
		for range 20 {
			must(t, pair(c, "job"))
		}
		return n.CallerRead()
	})
}

// TestCallersOfOneServerReadTheirReplies has a lone caller, then a crowd, whose replies
// the connection's goroutine reads, and then a lone caller again.
func TestCallersOfOneServerReadTheirReplies(t *testing.T) {
	c, n := watched(t, servertest.Redis(t, 1)[0], nil)
	for _, crowd := range []int{0, 1000} {
		var all sync.WaitGroup
		for g := range crowd {
			all.Go(func() {
				for range 3 {
					if err := pair(c, fmt.Sprint("own ", g)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		untilCallersRead(t, c, n)
		lock, release := 0, 0
		for range 200 { // on a busy machine some take longer than a caller reads
			l, err := c.Lock(t.Context(), "job", nil)
			must(t, err)
			if n.CallerRead() {
				lock++
			}
			must(t, l.Release(t.Context()))
			if n.CallerRead() {
				release++
			}
		}
		if lock < 20 || release < 20 {
			t.Errorf("of 200 replies callers read %d to Lock, and %d to Release", lock, release)
		}
	}
}

// TestCallerThatReadsNoticesItsContext freezes the server before each call. The
// caller returns long before the time limit of the node.
func TestCallerThatReadsNoticesItsContext(t *testing.T) {
	s := servertest.Redis(t, 1)[0]
	for name, end := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"deadline":       func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, soon) },
		"cancel":         cancelled(soon),
		"cancel at once": cancelled(soon / 100),
	} {
		t.Run(name, func(t *testing.T) {
			c, n := watched(t, s, nil)
			untilCallersRead(t, c, n)
			held, err := c.Lock(t.Context(), "held", nil)
			must(t, err)
			s.Freeze()
			defer s.Thaw()
			for what, call := range map[string]func(context.Context) error{
				"Lock":    func(ctx context.Context) error { _, err := c.Lock(ctx, "job", nil); return err },
				"Release": held.Release,
			} {
				ctx, cancel := end(context.Background())
				start := time.Now()
				err := call(ctx)
				cancel()
				if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
					t.Errorf("%s returned after %v: %v", what, time.Since(start), err)
				}
			}
		})
	}
}

const soon = 20 * time.Millisecond

// cancelled has a context be cancelled after some time.
func cancelled(after time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(after, cancel)
		return ctx, cancel
	}
}

// slowObserver is slow when a lease of a name ends.
type slowObserver struct {
	name        string
	began, goOn chan bool
}

func (o slowObserver) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }
func (o slowObserver) LockEnd(context.Context, observe.LockEnd)                           {}
func (o slowObserver) LeaseStart(ctx context.Context, _ observe.LeaseStart) context.Context {
	return ctx
}
func (o slowObserver) LeaseEnd(_ context.Context, end observe.LeaseEnd) {
	if end.Name == o.name {
		o.began <- true
		<-o.goOn
	}
}

// TestSlowObserverDelaysNobodyElse has an observer block the release of one lease.
// The replies to others are read meanwhile.
func TestSlowObserverDelaysNobodyElse(t *testing.T) {
	s := servertest.Redis(t, 1)[0]
	o := slowObserver{"slow", make(chan bool), make(chan bool)}
	c, n := watched(t, s, o)
	untilCallersRead(t, c, n)
	l, err := c.Lock(t.Context(), "slow", nil)
	must(t, err)
	released := make(chan error, 1)
	go func() { released <- l.Release(context.Background()) }()
	<-o.began
	start := time.Now()
	err = pair(c, "other")
	if took := time.Since(start); err != nil || took > 2*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	o.goOn <- true
	must(t, <-released)
}
