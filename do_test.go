package redlatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

func TestDoReleasesWhateverBecomesOfTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		failed := errors.New("the work failed")
		err := c.Do(t.Context(), "job", nil, func(ctx context.Context, l *redlatch.Lease) error {
			synctest.Wait()
			if links[0].Holder(t, "job") == "" {
				t.Error("the function ran without the lock")
			}
			return failed
		})
		locktest.WantErr(t, err, failed)
		synctest.Wait()
		locktest.WantFree(t, links, "job")

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			c.Do(t.Context(), "job", nil, func(context.Context, *redlatch.Lease) error { panic("oh") })
		}()
		synctest.Wait()
		locktest.WantFree(t, links, "job")
	})
}

func TestDoTellsTheFunctionAndTheCallerThatTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		err := c.Do(t.Context(), "job", &redlatch.LockOptions{TTL: 2 * time.Second}, func(ctx context.Context, l *redlatch.Lease) error {
			for _, lk := range links {
				lk.Freeze()
			}
			deadline := l.Deadline()
			<-ctx.Done()
			if late := time.Since(deadline); late > 0 {
				t.Errorf("the function was told %v after the deadline", late)
			}
			locktest.WantErr(t, context.Cause(ctx), redlatch.ErrLost)
			return nil // the function did not notice the loss
		})
		locktest.WantErr(t, err, redlatch.ErrLost)
	})
}

func TestDoContextIsTheCallersChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		gone := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := c.Do(ctx, "job", nil, func(ctx context.Context, l *redlatch.Lease) error {
			cancel(gone)
			<-ctx.Done()
			locktest.WantErr(t, context.Cause(ctx), gone)
			if err := l.Err(); err != nil {
				t.Errorf("the lease ended with the caller's context: %v", err)
			}
			return ctx.Err()
		})
		locktest.WantErr(t, err, context.Canceled)
	})
}

func TestWaitingForOneselfIsToldNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		nothing := func(context.Context, *redlatch.Lease) error { return nil }
		err := c.Do(t.Context(), "outer", nil, func(ctx context.Context, l *redlatch.Lease) error {
			if err := c.Do(ctx, "inner", nil, func(ctx context.Context, l *redlatch.Lease) error {
				locktest.WantErr(t, c.Do(ctx, "inner", nil, nothing), redlatch.ErrDeadlock)
				return c.Do(ctx, "outer", nil, nothing)
			}); !errors.Is(err, redlatch.ErrDeadlock) {
				t.Errorf("the outer lock inside itself: %v", err)
			}
			_, err := c.TryLock(ctx, "outer", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			_, err = c.Lock(ctx, "outer", &redlatch.LockOptions{Wait: time.Second})
			locktest.WantErr(t, err, redlatch.ErrHeld)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestLeaderThatReturnsResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		failed := errors.New("the work failed")
		for _, want := range []error{nil, failed} {
			terms := 0
			err := c.Lead(t.Context(), "app", nil, func(context.Context, *redlatch.Lease) error {
				terms++
				return want
			})
			if err != want || terms != 1 {
				t.Errorf("Lead returned %v after %d terms, want %v after 1", err, terms, want)
			}
			synctest.Wait()
			locktest.WantFree(t, links, "app")
		}
	})
}

// TestLeaderThatLostWaitsAgainWhenItsFunctionHasReturned has a function that
// takes a while to stop. The lock is not asked for before that.
func TestLeaderThatLostWaitsAgainWhenItsFunctionHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		var tokens []redlatch.Token
		running := 0
		err := c.Lead(t.Context(), "app", &redlatch.LockOptions{TTL: 3 * time.Second}, func(ctx context.Context, l *redlatch.Lease) error {
			if running++; running > 1 {
				t.Error("the function runs twice")
			}
			defer func() { running-- }()
			tokens = append(tokens, l.Token())
			if len(tokens) == 3 {
				return nil
			}
			for _, lk := range links {
				lk.Drop("app")
				lk.Take(t, "app", "another", 5*time.Second)
			}
			<-ctx.Done()
			locktest.WantErr(t, context.Cause(ctx), redlatch.ErrLost)
			time.Sleep(10 * time.Second)
			for _, lk := range links {
				if v := lk.Holder(t, "app"); v != "" {
					t.Errorf("it asks for the lock while the function of the last term still runs: %q holds", v)
				}
			}
			return ctx.Err()
		})
		must(t, err)
		if len(tokens) != 3 || tokens[1] <= tokens[0] || tokens[2] <= tokens[1] {
			t.Errorf("the terms had the tokens %v, want three that rise", tokens)
		}
		synctest.Wait()
		locktest.WantFree(t, links, "app")
	})
}

// TestLeaderReleasesAfterItsFunctionHasReturned ends the caller's context: the
// next candidate leads when the function has stopped, and not before.
func TestLeaderReleasesAfterItsFunctionHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		var stopped time.Time
		go func() {
			first <- hosts[0].Lead(ctx, "app", nil, func(ctx context.Context, l *redlatch.Lease) error {
				<-ctx.Done()
				time.Sleep(20 * time.Second) // longer than a TTL: the lease is kept alive
				stopped = time.Now()
				return nil
			})
		}()
		time.Sleep(time.Second)
		cancel()
		err := hosts[1].Lead(t.Context(), "app", nil, func(context.Context, *redlatch.Lease) error {
			if stopped.IsZero() {
				t.Error("there are two leaders")
			} else if d := time.Since(stopped); d > 100*time.Millisecond {
				t.Errorf("the next one led %v after the first had stopped", d)
			}
			return nil
		})
		must(t, err)
		if err := <-first; err != nil {
			t.Errorf("the first leader resigned with %v", err)
		}
	})
}

func TestTermEndsAtMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		terms := 0
		err := c.Lead(t.Context(), "app", &redlatch.LockOptions{MaxHold: time.Minute}, func(ctx context.Context, l *redlatch.Lease) error {
			if terms++; terms == 3 {
				return nil
			}
			<-ctx.Done()
			locktest.WantErr(t, context.Cause(ctx), redlatch.ErrMaxHold)
			return ctx.Err()
		})
		if err != nil || terms != 3 {
			t.Errorf("Lead returned %v after %d terms, want nil after 3", err, terms)
		}
	})
}

func TestCandidateWaitsForServersUnlessItHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, l := range links {
			l.Cut()
		}
		err := c.Lead(t.Context(), "app", &redlatch.LockOptions{Wait: time.Minute}, nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)

		start := time.Now()
		go func() {
			time.Sleep(time.Hour)
			for _, l := range links {
				l.Set(func(l *locktest.Link) { l.Refuse = nil })
			}
		}()
		err = c.Lead(t.Context(), "app", nil, func(context.Context, *redlatch.Lease) error { return nil })
		if d := time.Since(start); err != nil || d < time.Hour || d > time.Hour+10*time.Second {
			t.Errorf("it led after %v, %v, want after an hour", d, err)
		}
	})
}

func TestCandidateReturnsWhatCannotEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.WantErr(t, c.Lead(t.Context(), "", nil, nil), redlatch.ErrConfig)

		locktest.MustLock(t, c, "app", redlatch.LockOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		locktest.WantErr(t, c.Lead(ctx, "app", nil, nil), context.DeadlineExceeded)

		result := make(chan error)
		go func() { result <- c.Lead(t.Context(), "app", nil, nil) }()
		time.Sleep(time.Second)
		c.Close()
		locktest.WantErr(t, <-result, redlatch.ErrClosed)
	})
}
