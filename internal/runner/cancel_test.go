package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/observe"
)

// TestContextIsHeededOnASingleServer freezes a server. The caller's context
// ends after 50 ms, long before the node time limit.
func TestContextIsHeededOnASingleServer(t *testing.T) {
	const patience = 50 * time.Millisecond
	opts := redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true}
	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		locktest.Run(t, end.Error(), func(t *testing.T) {
			links, c := locktest.New(t, 1, redlatch.Options{NodeTimeout: 5 * time.Second})
			held := locktest.MustLock(t, c, "held", opts)
			links[0].Freeze()
			for _, call := range []func(context.Context) error{
				func(ctx context.Context) error { _, err := c.TryLock(ctx, "tried", &opts); return err },
				func(ctx context.Context) error { _, err := c.Lock(ctx, "waited for", &opts); return err },
				held.Extend,
				held.Release,
			} {
				ctx, cancel := context.WithCancel(t.Context())
				if end == context.DeadlineExceeded {
					ctx = locktest.Within(t, patience)
				}
				time.AfterFunc(patience, cancel)
				start := time.Now()
				locktest.WantErr(t, call(ctx), end)
				locktest.WantTook(t, start, patience, patience)
				if !c.Nodes()[0].Up {
					t.Error("the server is said to be down: nobody has waited for its time limit")
				}
			}
			// The server executes what it was sent. Nothing of it must remain.
			links[0].Thaw()
			time.Sleep(time.Second)
			for _, name := range []string{"held", "tried", "waited for"} {
				locktest.WantFree(t, links, name)
			}
		})
	}
}

// TestCloseEndsWhoAsksASilentServer closes the client in the middle of a request, which
// its caller has sent by itself.
func TestCloseEndsWhoAsksASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 1, redlatch.Options{NodeTimeout: 5 * time.Second})
		locktest.MustLock(t, c, "first", redlatch.LockOptions{}).Release(t.Context())
		links[0].Freeze()
		start := time.Now()
		time.AfterFunc(time.Second, func() { c.Close() })
		_, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{TTL: 30 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrClosed)
		locktest.WantTook(t, start, time.Second, time.Second)
		links[0].Thaw()
	})
}

// TestEndOfTheContextIsNotTakenForARefusal ends callers' contexts while another
// client holds the lock, while there is no quorum, or in the middle of a round, when
// the nodes have fallen silent. A caller that treats "held by another" as no failure
// must not mistake a cancellation for it. The text is what the last round that ended
// found.
func TestEndOfTheContextIsNotTakenForARefusal(t *testing.T) {
	const held, away = `held by another client ("another")`, "no route to host"
	well := func(locktest.Links) {}
	for what, c := range map[string]struct {
		first, then func(locktest.Links)
		says        string
	}{
		"held":                   {well, well, held},
		"held, then no quorum":   {well, locktest.Links.Cut, away},
		"held, then silent":      {well, locktest.Links.Freeze, held},
		"no quorum, then silent": {locktest.Links.Cut, func(links locktest.Links) { links.Mend(); links.Freeze() }, away},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			time.Sleep(time.Hour) // a client's clock is far from zero
			links, client := locktest.New(t, 3, redlatch.Options{})
			links.Take(t, "job", "another", time.Hour)
			c.first(links)
			time.AfterFunc(time.Second, func() { c.then(links) })
			ctx := locktest.Within(t, 2*time.Second)
			_, err := client.Lock(ctx, "job", nil)
			locktest.WantErr(t, err, context.DeadlineExceeded)
			if errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrNoQuorum) {
				t.Errorf("%v is taken for a refusal", err)
			}
			if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "after -") {
				t.Errorf("%v does not say what it waited for", err)
			}
		})
	}
}

// TestLossIsReportedThoughTheContextEnded has the nodes report that the lock is
// lost in the moment in which the caller's context ends.
func TestLossIsReportedThoughTheContextEnded(t *testing.T) {
	for what, f := range map[string]func(*redlatch.Client, *redlatch.Lease, context.Context) error{
		"Extend":  func(_ *redlatch.Client, l *redlatch.Lease, ctx context.Context) error { return l.Extend(ctx) },
		"Release": func(_ *redlatch.Client, l *redlatch.Lease, ctx context.Context) error { return l.Release(ctx) },
		"Attach": func(c *redlatch.Client, l *redlatch.Lease, ctx context.Context) error {
			_, err := c.Attach(ctx, l.Handle())
			return err
		},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			end := func() {}
			observer := locktest.Rounds(func(observe.RoundEnd) { end() })
			links, c := locktest.New(t, 3, redlatch.Options{Observer: observer})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
			synctest.Wait()
			links.Drop("job")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end = cancel
			locktest.WantErr(t, f(c, l, ctx), redlatch.ErrLost)
		})
	}
}
