package redlatch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

func noop(context.Context, *redlatch.Lease) error { return nil }

// Two machines at a time have the same skew, and come at the same moment.
func TestOnceRunsAnOccurrenceOnceOnTenMachinesWithSkewedClocks(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			links, _ := locktest.NewLinks(t, n)
			var runs, said atomic.Int32
			var wg sync.WaitGroup
			for i := range 10 {
				nodes := make([]redlatch.Node, n)
				for j := range nodes {
					nodes[j] = locktest.NewLink(t, links[j].Node)
				}
				skew := time.Duration(i/2-2) * 700 * time.Millisecond
				c := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, clockOff(skew)))
				wg.Go(func() {
					time.Sleep(4*time.Second - skew) // it is due when the machine's clock says so
					for range 3 {
						ran, err := c.Once(t.Context(), "report", "2026-11-16", nil, func(context.Context, *redlatch.Lease) error {
							runs.Add(1)
							time.Sleep(time.Second)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
						if ran {
							said.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if runs.Load() != 1 || said.Load() != 1 {
				t.Errorf("it ran %d times, and %d callers said so", runs.Load(), said.Load())
			}
			c := locktest.NewClient(t, []redlatch.Node{links[0]}, redlatch.Options{})
			if done, since, err := c.Completed(t.Context(), "report", "2026-11-16"); !done || err != nil || since.IsZero() || since.After(time.Now()) {
				t.Errorf("done is %v since %v, %v", done, since, err)
			}
			if ran, err := c.Once(t.Context(), "report", "2026-11-17", nil, noop); !ran || err != nil {
				t.Errorf("the next occurrence: %v, %v", ran, err)
			}
		})
	}
}

func TestOccurrenceThatFailedIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{TTL: time.Second})
		broken := errors.New("broken")
		ran, err := c.Once(t.Context(), "job", "1", nil, func(context.Context, *redlatch.Lease) error { return broken })
		if !ran || !errors.Is(err, broken) {
			t.Errorf("%v, %v", ran, err)
		}
		// One that lost its lock, though it returned nil.
		ran, err = c.Once(t.Context(), "job", "1", &redlatch.LockOptions{NoKeepAlive: true}, func(context.Context, *redlatch.Lease) error {
			time.Sleep(2 * time.Second)
			return nil
		})
		if !ran || !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("%v, %v", ran, err)
		}
		func() {
			defer func() { recover() }()
			c.Once(t.Context(), "job", "1", nil, func(context.Context, *redlatch.Lease) error { panic("it") })
		}()
		if done, _, err := c.Completed(t.Context(), "job", "1"); done || err != nil {
			t.Errorf("done is %v, %v", done, err)
		}
		if ran, err := c.Once(t.Context(), "job", "1", nil, noop); !ran || err != nil {
			t.Errorf("after three that failed: %v, %v", ran, err)
		}
		if ran, err := c.Once(t.Context(), "job", "1", nil, noop); ran || err != nil {
			t.Errorf("after it was done: %v, %v", ran, err)
		}
	})
}

func TestOneRecordMeansCompletedAndIsWrittenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		mark := node.RecordsRequest{Op: node.OpComplete, Name: "job", Occurrence: "1", Retention: time.Hour}
		_, err := links[1].Records(t.Context(), mark)
		must(t, err)
		links[0].Cut() // so that the mark is among the answers
		if ran, err := c.Once(t.Context(), "job", "1", nil, noop); ran || err != nil {
			t.Errorf("%v, %v", ran, err)
		}
		synctest.Wait()
		if r, err := links[2].Records(t.Context(), node.RecordsRequest{Op: node.OpCheck, Name: "job", Occurrence: "1", Retention: time.Hour}); err != nil || r.Status != node.Granted {
			t.Errorf("the third node answers %v, %v", r.Status, err)
		}
	})
}

func TestSuccessThatIsNotNotedIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		ran, err := c.Once(t.Context(), "job", "1", nil, func(context.Context, *redlatch.Lease) error {
			links[0].Cut()
			links[1].Cut()
			return nil
		})
		if !ran || !errors.Is(err, redlatch.ErrNoQuorum) {
			t.Errorf("%v, %v; want that it ran, and ErrNoQuorum", ran, err)
		}
	})
}

func TestDoneSaysSinceWhenAQuorumRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{Guard: redlatch.GuardOff, CompletedRetention: time.Hour})
		first := time.Now()
		check := func(want time.Time) {
			t.Helper()
			_, since, err := c.Completed(t.Context(), "job", "1")
			if err != nil || since.Sub(want).Abs() > 100*time.Millisecond {
				t.Errorf("a quorum remembers since %v, %v; want %v", since, err, want)
			}
			synctest.Wait()
		}
		check(first)
		time.Sleep(time.Minute)
		links[0].Set(func(l *locktest.Link) { l.Node = memory.New(&memory.Options{Name: "1"}) })
		check(first) // two of three remember
		time.Sleep(time.Minute)
		links[1].Set(func(l *locktest.Link) { l.Node = memory.New(&memory.Options{Name: "2"}) })
		check(first.Add(time.Minute))
		time.Sleep(50 * time.Minute)
		check(first.Add(time.Minute))
		for range 3 {
			time.Sleep(50 * time.Minute)
			check(time.Now().Add(-time.Hour)) // older marks are forgotten
		}
		time.Sleep(2 * time.Hour) // nobody asked
		check(time.Now())
	})
}

func TestBadOccurrencesAreRefused(t *testing.T) {
	_, c := locktest.New(t, 1, redlatch.Options{})
	for _, bad := range []struct {
		name, occurrence, field string
		opts                    redlatch.LockOptions
	}{
		{"", "1", "name", redlatch.LockOptions{}},
		{"job", "", "occurrence", redlatch.LockOptions{}},
		{"job", "a\nb", "occurrence", redlatch.LockOptions{}},
		{"job", string(make([]byte, 257)), "occurrence", redlatch.LockOptions{}},
		{"job", "1", "Shared", redlatch.LockOptions{Shared: true}},
		{"job", "1", "Shared", redlatch.LockOptions{Slots: 2}},
	} {
		ran, err := c.Once(t.Context(), bad.name, bad.occurrence, &bad.opts, noop)
		if config, ok := errors.AsType[*redlatch.ConfigError](err); ran || !ok || config.Field != bad.field {
			t.Errorf("%q of %q: %v, %v; want a ConfigError about %s", bad.occurrence, bad.name, ran, err, bad.field)
		}
	}
}
