package redlatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

func TestDoReleasesWhateverBecomesOfTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
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
		links, c := locktest.New(t, 3, redlatch.Options{})
		err := c.Do(t.Context(), "job", &redlatch.LockOptions{TTL: 2 * time.Second}, func(ctx context.Context, l *redlatch.Lease) error {
			links.Freeze()
			deadline := l.Deadline()
			<-ctx.Done()
			locktest.WantTook(t, deadline, 0, 0)
			locktest.WantErr(t, context.Cause(ctx), redlatch.ErrLost)
			return nil // the function did not notice the loss
		})
		locktest.WantErr(t, err, redlatch.ErrLost)
	})
}

func TestDoContextIsTheCallersChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
		gone := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := c.Do(ctx, "job", nil, func(ctx context.Context, l *redlatch.Lease) error {
			cancel(gone)
			<-ctx.Done()
			locktest.WantErr(t, context.Cause(ctx), gone)
			must(t, l.Err())
			return ctx.Err()
		})
		locktest.WantErr(t, err, context.Canceled)
	})
}

func TestWaitingForOneselfIsToldNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
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
		must(t, err)
		// One that was released early can be had again.
		must(t, c.Do(t.Context(), "early", nil, func(ctx context.Context, l *redlatch.Lease) error {
			must(t, l.Release(t.Context()))
			again, err := c.Lock(context.WithoutCancel(ctx), "early", nil)
			must(t, err)
			return again.Release(t.Context())
		}))
	})
}

// TestReaderThatWantsToWriteIsToldWhyNot: two readers that both wanted that would
// wait for each other, so none of them waits.
func TestReaderThatWantsToWriteIsToldWhyNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
		reader := &redlatch.LockOptions{Shared: true}
		began := time.Now()
		err := c.Do(t.Context(), "files", reader, func(ctx context.Context, l *redlatch.Lease) error {
			_, again := c.Lock(ctx, "files", reader)
			locktest.WantErr(t, again, redlatch.ErrDeadlock)
			if strings.Contains(again.Error(), "writer") {
				t.Errorf("a second reader: %v", again)
			}
			_, err := c.Lock(ctx, "files", nil)
			return err
		})
		locktest.WantErr(t, err, redlatch.ErrDeadlock)
		if !strings.Contains(err.Error(), `"files": a reader cannot become a writer`) || !strings.Contains(err.Error(), "Downgrade") {
			t.Errorf("the error is %v", err)
		}
		locktest.WantTook(t, began, 0, 0)
	})
}

func TestTryDoSkipsWhatAnotherHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c, other := locktest.NewClient(t, nodes, redlatch.Options{}), locktest.NewClient(t, nodes, redlatch.Options{})
		failed := errors.New("the work failed")
		calls := 0
		fn := func(ctx context.Context, l *redlatch.Lease) error {
			calls++
			if l.Remaining() <= 0 || ctx.Err() != nil {
				t.Error("the function ran without the lock")
			}
			return failed
		}
		ran, err := c.TryDo(t.Context(), "job", nil, fn)
		if locktest.WantErr(t, err, failed); !ran || calls != 1 {
			t.Errorf("a free lock: ran is %v, after %d calls", ran, calls)
		}
		synctest.Wait()
		locktest.WantFree(t, links, "job")

		lease := locktest.MustLock(t, other, "job", redlatch.LockOptions{})
		began := time.Now()
		if ran, err := c.TryDo(t.Context(), "job", nil, fn); ran || err != nil || calls != 1 || time.Since(began) > 0 {
			t.Errorf("a held lock: ran is %v, %v, after %d calls and %v", ran, err, calls, time.Since(began))
		}
		wait := &redlatch.LockOptions{Wait: 3 * time.Second}
		if ran, err := c.TryDo(t.Context(), "job", wait, fn); ran || err != nil || time.Since(began) != wait.Wait {
			t.Errorf("with Wait: ran is %v, %v, after %v", ran, err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { lease.Release(t.Context()) })
		ran, err = c.TryDo(t.Context(), "job", wait, fn)
		if locktest.WantErr(t, err, failed); !ran || calls != 2 {
			t.Errorf("freed during the wait: ran is %v, after %d calls", ran, calls)
		}

		links.Cut()
		ran, err = c.TryDo(t.Context(), "job", nil, fn)
		if locktest.WantErr(t, err, redlatch.ErrNoQuorum); ran || calls != 2 {
			t.Errorf("without nodes: ran is %v, after %d calls", ran, calls)
		}
	})
}

func TestLeaderThatReturnsResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
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
		links, c := locktest.New(t, 3, redlatch.Options{})
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
			synctest.Wait() // the lock is on all nodes
			links.Drop("app")
			links.Take(t, "app", "another", 5*time.Second)
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
			exclusion.Never(t, "the terms had the tokens %v, want three that rise", tokens)
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
		_, c := locktest.New(t, 3, redlatch.Options{})
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
		links, c := locktest.New(t, 3, redlatch.Options{})
		links.Cut()
		err := c.Lead(t.Context(), "app", &redlatch.LockOptions{Wait: time.Minute}, nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)

		start := time.Now()
		go func() {
			time.Sleep(5 * time.Minute)
			links.Mend()
		}()
		err = c.Lead(t.Context(), "app", nil, func(context.Context, *redlatch.Lease) error { return nil })
		if d := time.Since(start); err != nil || d < 5*time.Minute || d > 5*time.Minute+10*time.Second {
			t.Errorf("it led after %v, %v, want after five minutes", d, err)
		}
	})
}

func TestCandidateReturnsWhatCannotEndByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
		locktest.WantErr(t, c.Lead(t.Context(), "", nil, nil), redlatch.ErrConfig)

		locktest.MustLock(t, c, "app", redlatch.LockOptions{})
		ctx := locktest.Within(t, time.Minute)
		locktest.WantErr(t, c.Lead(ctx, "app", nil, nil), context.DeadlineExceeded)

		result := make(chan error)
		go func() { result <- c.Lead(t.Context(), "app", nil, nil) }()
		time.Sleep(time.Second)
		c.Close()
		locktest.WantErr(t, <-result, redlatch.ErrClosed)
	})
}

func TestDoNeedNotWaitForItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		for _, l := range links {
			l.Out, l.Back = time.Millisecond, time.Millisecond
		}
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		do := func(opts *redlatch.LockOptions) time.Duration {
			t.Helper()
			var lease *redlatch.Lease
			start := time.Now()
			err := c.Do(t.Context(), "job", opts, func(_ context.Context, l *redlatch.Lease) error {
				lease = l
				return nil
			})
			took := time.Since(start)
			must(t, err)
			locktest.WantErr(t, lease.Err(), redlatch.ErrReleased)
			time.Sleep(time.Second)
			locktest.WantFree(t, links, "job")
			return took
		}
		do(nil) // it has the nodes' clocks known
		if took := do(nil); took != 4*time.Millisecond {
			t.Errorf("Do took %v, want two round trips of 2ms", took)
		}
		if took := do(&redlatch.LockOptions{NoReleaseWait: true}); took != 2*time.Millisecond {
			t.Errorf("Do took %v without waiting for its release, want one round trip of 2ms", took)
		}
	})
}

func TestCloseWaitsForReleasesOfDo(t *testing.T) {
	// The release of one takes long, that of the other fails, and to say so too.
	for name, spoil := range map[string]func(l *locktest.Link){
		"slow": func(l *locktest.Link) { l.Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond }) },
		"cut":  (*locktest.Link).Cut,
	} {
		locktest.Run(t, name, func(t *testing.T) {
			var log slowLog
			links, c := locktest.New(t, 3, redlatch.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			err := c.Do(t.Context(), "job", &redlatch.LockOptions{NoReleaseWait: true}, func(context.Context, *redlatch.Lease) error {
				synctest.Wait() // until the third node has the lock too
				for _, l := range links {
					spoil(l)
				}
				return nil
			})
			must(t, err)
			if links[0].Holder(t, "job") == "" {
				t.Error("Do waited for its release")
			}
			c.Close()
			if logged := strings.Contains(log.String(), "could not be released"); logged != (name == "cut") {
				t.Errorf("Close returned with this in the log: %q", log.String())
			}
			if name == "slow" {
				locktest.WantFree(t, links, "job")
			}
		})
	}
}

// slowLog takes its time to write.
type slowLog struct{ strings.Builder }

func (l *slowLog) Write(line []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return l.Builder.Write(line)
}

// TestReleaseThatDoDidNotWaitForIsReported has the nodes fall silent, and then
// forget the lock, before the release.
func TestReleaseThatDoDidNotWaitForIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		var log strings.Builder
		var rounds []observe.RoundEnd
		c := locktest.NewClient(t, nodes, redlatch.Options{
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Observer: locktest.Rounds(func(e observe.RoundEnd) { rounds = append(rounds, e) }),
		})
		for _, step := range []struct {
			spoil func(l *locktest.Link)
			want  string
		}{
			{(*locktest.Link).Freeze, `msg="redlatch: lock could not be released; it will expire after its TTL" name=job err=`},
			{func(l *locktest.Link) { locktest.Release(t, l, "job") }, `msg="redlatch: lock is lost" name=job token=`},
		} {
			log.Reset()
			rounds = nil
			err := c.Do(t.Context(), "job", &redlatch.LockOptions{NoReleaseWait: true}, func(context.Context, *redlatch.Lease) error {
				synctest.Wait()
				for _, l := range links {
					step.spoil(l)
				}
				return nil
			})
			must(t, err)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if !strings.Contains(log.String(), step.want) {
				t.Errorf("the log has %q, want %q", log.String(), step.want)
			}
			if last := rounds[len(rounds)-1]; last.Op != node.OpRelease || last.Won {
				t.Errorf("the observer was notified of %+v", last)
			}
			links.Thaw()
			time.Sleep(20 * time.Second)
		}
	})
}
