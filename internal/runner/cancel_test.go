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
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// TestContextIsHeededOnASingleServer freezes a server. The caller's context
// ends after 50 ms, long before the node time limit.
func TestContextIsHeededOnASingleServer(t *testing.T) {
	const patience = 50 * time.Millisecond
	for what, begin := range map[string]func(context.Context) (context.Context, error){
		"deadline": func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			context.AfterFunc(ctx, cancel)
			return ctx, context.DeadlineExceeded
		},
		"cancellation": func(ctx context.Context) (context.Context, error) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(patience, cancel)
			return ctx, context.Canceled
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, 1)
				c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 5 * time.Second})
				held := locktest.MustLock(t, c, "held", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
				links[0].Freeze()
				for call, f := range map[string]func(context.Context) error{
					"TryLock": func(ctx context.Context) error {
						_, err := c.TryLock(ctx, "tried", &redlatch.LockOptions{TTL: 30 * time.Second})
						return err
					},
					"Lock": func(ctx context.Context) error {
						_, err := c.Lock(ctx, "waited for", &redlatch.LockOptions{TTL: 30 * time.Second})
						return err
					},
					"Extend": held.Extend,
				} {
					ctx, end := begin(t.Context())
					start := time.Now()
					locktest.WantErr(t, f(ctx), end)
					if took := time.Since(start); took != patience {
						t.Errorf("%s returned after %v, its context ended after %v", call, took, patience)
					}
				}
				ctx, end := begin(t.Context())
				start := time.Now()
				locktest.WantErr(t, held.Release(ctx), end)
				if took := time.Since(start); took != patience {
					t.Errorf("Release returned after %v, its context ended after %v", took, patience)
				}
				// The server executes what it was sent. Nothing of it must
				// remain.
				links[0].Thaw()
				time.Sleep(time.Second)
				for _, name := range []string{"held", "tried", "waited for"} {
					locktest.WantFree(t, links, name)
				}
			})
		})
	}
}

// TestContextIsHeededWhileASingleServerOffersTheLock freezes the server after
// it has notified a waiter, while the waiter asks it.
func TestContextIsHeededWhileASingleServerOffersTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 1, redlatch.Options{NodeTimeout: 5 * time.Second})
		first := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := hosts[1].Lock(ctx, "job", &redlatch.LockOptions{TTL: 30 * time.Second})
			done <- err
		}()
		time.Sleep(10 * time.Millisecond)
		road := hosts[1].Links[0]
		asked := make(chan struct{}, 1)
		road.Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				if req.Op == node.OpAcquire {
					asked <- struct{}{}
					time.Sleep(4 * time.Second)
				}
			}
		})
		must(t, first.Release(t.Context()))
		<-asked
		start := time.Now()
		cancel()
		locktest.WantErr(t, <-done, context.Canceled)
		if took := time.Since(start); took > 0 {
			t.Errorf("Lock returned %v after its context had ended", took)
		}
		time.Sleep(10 * time.Second)
		locktest.WantFree(t, hosts[1].Links, "job")
	})
}

// TestEndOfTheContextIsNotTakenForARefusal ends callers' contexts while another
// client holds the lock, and while there is no quorum. A caller that treats
// "held by another" as no failure must not mistake a cancellation for it.
func TestEndOfTheContextIsNotTakenForARefusal(t *testing.T) {
	for what, c := range map[string]struct {
		trouble func(l *locktest.Link)
		says    string
	}{
		"held":      {func(l *locktest.Link) {}, "held by"},
		"no quorum": {func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable }, "no route to host"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, 3)
				client := locktest.NewClient(t, nodes, redlatch.Options{})
				for _, l := range links {
					l.Take(t, "job", "another", time.Hour)
				}
				time.AfterFunc(time.Second, func() {
					for _, l := range links {
						l.Set(c.trouble)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				_, err := client.Lock(ctx, "job", nil)
				locktest.WantErr(t, err, context.DeadlineExceeded)
				if errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrNoQuorum) {
					t.Errorf("%v is taken for a refusal", err)
				}
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v does not say what it waited for", err)
				}
			})
		})
	}
}

// TestErrorOfACallerThatLeavesInTheMiddleOfARoundIsOfTheRoundBefore ends a
// caller's context while its nodes are silent. The error is what the last round
// that ended found: who holds the lock, or how long too few nodes took to say so.
func TestErrorOfACallerThatLeavesInTheMiddleOfARoundIsOfTheRoundBefore(t *testing.T) {
	for what, c := range map[string]struct {
		trouble error
		says    string
	}{
		"held":      {nil, `held by another client ("another")`},
		"no quorum": {locktest.ErrUnreachable, "no route to host"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // a client's clock is far from zero
				links, nodes := locktest.NewLinks(t, 3)
				client := locktest.NewClient(t, nodes, redlatch.Options{})
				for _, l := range links {
					l.Take(t, "job", "another", time.Hour)
					l.Set(func(l *locktest.Link) { l.Refuse = c.trouble })
				}
				time.AfterFunc(time.Second, func() {
					for _, l := range links {
						l.Set(func(l *locktest.Link) { l.Refuse = nil })
						l.Freeze()
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := client.Lock(ctx, "job", nil)
				locktest.WantErr(t, err, context.DeadlineExceeded)
				if text := err.Error(); !strings.Contains(text, c.says) || strings.Contains(text, "after -") {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// ender is an observer that ends a context when a round is over.
type ender struct{ end func() }

func (e *ender) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }
func (e *ender) LockEnd(context.Context, observe.LockEnd)                           {}
func (e *ender) RoundEnd(context.Context, observe.RoundEnd)                         { e.end() }

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
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, 3)
				observer := &ender{func() {}}
				c := locktest.NewClient(t, nodes, redlatch.Options{Observer: observer})
				l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
				synctest.Wait()
				for _, lk := range links {
					lk.Drop("job")
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				observer.end = cancel
				locktest.WantErr(t, f(c, l, ctx), redlatch.ErrLost)
			})
		})
	}
}
