package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

var reader = redlatch.LockOptions{Shared: true}

func TestReadersHoldTogetherAndExcludeWriters(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, n, redlatch.Options{})
			one := locktest.MustLock(t, c, "doc", reader)
			synctest.Wait() // it is on all nodes, so that each names the same reader first
			two := locktest.MustLock(t, c, "doc", reader)
			_, err := c.TryLock(t.Context(), "doc", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			if !strings.Contains(err.Error(), "and 1 other reader") {
				t.Errorf("the error does not name both readers: %v", err)
			}
			must(t, one.Release(t.Context()))
			synctest.Wait() // the release is on all nodes
			_, err = c.TryLock(t.Context(), "doc", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			if !strings.Contains(err.Error(), "(a reader)") {
				t.Errorf("the error does not name the reader: %v", err)
			}
			must(t, two.Release(t.Context()))
			w := locktest.MustLock(t, c, "doc", redlatch.LockOptions{})
			if w.Token() <= two.Token() {
				exclusion.Never(t, "the writer has token %d, the reader before it %d", w.Token(), two.Token())
			}
			_, err = c.TryLock(t.Context(), "doc", &reader)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			must(t, w.Release(t.Context()))
			if r := locktest.MustLock(t, c, "doc", reader); r.Token() <= w.Token() {
				exclusion.Never(t, "the reader has token %d, the writer before it %d", r.Token(), w.Token())
			} else if err := r.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			locktest.WantFree(t, links, "doc")
		})
	}
}

func TestWaitingWriterIsNotStarvedByReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		first := locktest.MustLock(t, hosts[0].Client, "job", reader)
		waiters := &line{t: t}
		waiters.join(hosts[1].Client, "writer", time.Second, redlatch.LockOptions{})
		waiters.join(hosts[2].Client, "reader", time.Second, reader)
		_, err := hosts[0].Client.TryLock(t.Context(), "job", &reader)
		locktest.WantErr(t, err, redlatch.ErrHeld)
		must(t, first.Release(t.Context()))
		waiters.all.Wait()
		if order := waiters.order(); !slices.Equal(order, []string{"writer", "reader"}) {
			t.Errorf("they came in the order %q", order)
		}
	})
}

func TestRunOfReadersIsAdmittedTogether(t *testing.T) {
	const count = 16
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, count, 3, redlatch.Options{})
		writer := locktest.MustLock(t, hosts[0].Client, "doc", redlatch.LockOptions{})
		var h locktest.History
		var wg sync.WaitGroup
		for _, host := range hosts {
			wg.Go(func() { h.Hold(t, host.Client, "doc", reader, time.Second) })
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		must(t, writer.Release(t.Context()))
		wg.Wait()
		if _, most := h.Judge(t); most != count {
			t.Errorf("%d of %d readers held the lock together", most, count)
		}
		locktest.WantTook(t, began, 0, 2*time.Second)
	})
}

func TestReaderThatIsGoneDoesNotBlockThoughOthersExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{TTL: 3 * time.Second})
		gone := locktest.MustLock(t, c, "doc", redlatch.LockOptions{Shared: true, NoKeepAlive: true})
		other := locktest.MustLock(t, c, "doc", reader)
		time.Sleep(10 * time.Second) // the other is extended meanwhile
		locktest.WantErr(t, gone.Err(), redlatch.ErrLost)
		must(t, other.Release(t.Context()))
		if _, err := c.TryLock(t.Context(), "doc", nil); err != nil {
			t.Errorf("the reader that is gone still holds the lock: %v", err)
		}
	})
}

func TestSlotsAreHeldBySoManyAtMost(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, n, redlatch.Options{})
			opts := redlatch.LockOptions{Slots: 2}
			one, two := locktest.MustLock(t, c, "gpu", opts), locktest.MustLock(t, c, "gpu", opts)
			if one.Slot() != 0 || two.Slot() != 1 || two.Token() <= one.Token() {
				t.Errorf("slots %d and %d, tokens %d and %d", one.Slot(), two.Slot(), one.Token(), two.Token())
			}
			_, err := c.TryLock(t.Context(), "gpu", &opts)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			if !strings.Contains(err.Error(), "(slot 0 of 2) and in 1 other slot") {
				t.Errorf("the error does not name the slots: %v", err)
			}
			for _, other := range []redlatch.LockOptions{{}, reader} {
				_, err := c.TryLock(t.Context(), "gpu", &other)
				locktest.WantErr(t, err, redlatch.ErrHeld)
			}
			must(t, one.Release(t.Context()))
			if l := locktest.MustLock(t, c, "gpu", opts); l.Slot() != 0 {
				t.Errorf("slot %d, want 0, which is free", l.Slot())
			} else if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			must(t, two.Release(t.Context()))
			synctest.Wait()
			locktest.WantFree(t, links, "gpu")
		})
	}
}

func TestCrowdSharesSlotsReadersAndWriters(t *testing.T) {
	for _, kinds := range [][]redlatch.LockOptions{
		{{Slots: 3}}, {{Slots: 1}}, {{Slots: 3}, {}}, {reader, {}}, {reader, reader, reader, {}, {Slots: 2}},
	} {
		for _, n := range []int{1, 3, 5} {
			locktest.Run(t, fmt.Sprintf("%+v on %d", kinds, n), func(t *testing.T) {
				hosts := locktest.NewHosts(t, 16, n, redlatch.Options{TTL: 5 * time.Second})
				var h locktest.History
				var wg sync.WaitGroup
				began := time.Now()
				for i, host := range hosts {
					wg.Go(func() {
						for range 5 {
							h.Hold(t, host.Client, "res", kinds[i%len(kinds)], 10*time.Millisecond)
						}
					})
				}
				wg.Wait()
				leases, most := h.Judge(t)
				t.Logf("%v for %d holds, %d at most together", time.Since(began), leases, most)
				if want := kinds[0].Slots; leases != 80 || len(kinds) == 1 && most != want {
					t.Errorf("of %d leases %d were held together, want %d", leases, most, want)
				}
			})
		}
	}
}

func TestDowngradeLetsReadersInAndNoWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 3, redlatch.Options{})
		w := locktest.MustLock(t, hosts[0].Client, "doc", redlatch.LockOptions{})
		token := w.Token()
		var got *redlatch.Lease
		var wg sync.WaitGroup
		wg.Go(func() { got = locktest.MustLock(t, hosts[1].Client, "doc", reader) })
		time.Sleep(time.Second)
		must(t, w.Downgrade(t.Context()))
		wg.Wait()
		if w.Err() != nil || w.Token() != token || got.Token() <= token {
			t.Errorf("after it: %v, token %d, was %d; the reader's %d", w.Err(), w.Token(), token, got.Token())
		}
		_, err := hosts[2].Client.TryLock(t.Context(), "doc", nil)
		locktest.WantErr(t, err, redlatch.ErrHeld)
		time.Sleep(time.Minute) // both are extended
		must(t, w.Downgrade(t.Context()))
		if w.Err() != nil || got.Err() != nil {
			t.Errorf("after a minute: %v, %v", w.Err(), got.Err())
		}
		for _, l := range []*redlatch.Lease{w, got} {
			must(t, l.Release(t.Context()))
		}
		slot := locktest.MustLock(t, hosts[0].Client, "gpu", redlatch.LockOptions{Slots: 2})
		locktest.WantErr(t, slot.Downgrade(t.Context()), redlatch.ErrConfig)
	})
}

func TestDowngradeDuringAnExtensionIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		w := locktest.MustLock(t, c, "doc", redlatch.LockOptions{})
		links.Freeze()
		var wg sync.WaitGroup
		wg.Go(func() {
			must(t, w.Extend(t.Context()))
		})
		synctest.Wait()
		wg.Go(func() {
			must(t, w.Downgrade(t.Context()))
		})
		synctest.Wait()
		links.Thaw()
		wg.Wait()
		if _, err := c.TryLock(t.Context(), "doc", &reader); err != nil {
			t.Errorf("no reader is let in: %v", err)
		}
	})
}

func TestHandleOfASharedLeaseAndOfASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
		for _, opts := range []redlatch.LockOptions{reader, {Slots: 3}} {
			name := fmt.Sprintf("res-%d", opts.Slots)
			other := locktest.MustLock(t, c, name, opts)
			l := locktest.MustLock(t, c, name, opts)
			slot := l.Slot()
			text, err := l.Detach()
			must(t, err)
			back, err := c.Attach(t.Context(), text)
			if err != nil || back.Slot() != slot {
				t.Fatalf("attached with slot %d, %v; want %d", back.Slot(), err, slot)
			}
			time.Sleep(time.Minute)
			must(t, back.Err())
			text, err = back.Detach()
			must(t, err)
			must(t, c.Release(t.Context(), text))
			locktest.WantErr(t, c.Release(t.Context(), text), redlatch.ErrLost)
			must(t, other.Release(t.Context()))
			if _, err := c.TryLock(t.Context(), name, nil); err != nil {
				t.Errorf("after both are free: %v", err)
			}
		}
	})
}

func TestShareIsRepairedWhereOthersHoldTheName(t *testing.T) {
	for _, opts := range []redlatch.LockOptions{reader, {Slots: 3}} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{})
			locktest.MustLock(t, c, "res", opts)
			links[2].Cut()
			second := locktest.MustLock(t, c, "res", opts)
			links[2].Mend()
			time.Sleep(time.Minute)
			look, err := links[2].Look(t.Context(), "res")
			if err != nil || len(look.Holders) != 2 || !slices.ContainsFunc(look.Holders, func(h node.Holder) bool { return h.Token == second.Token() }) {
				t.Errorf("%+v: the node that missed the second has %+v, %v", opts, look.Holders, err)
			}
		})
	}
}

func TestClaimsThatCrossOverSlotsTryAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 2, redlatch.Options{RetryDelay: time.Hour})
		opts := redlatch.LockOptions{Slots: 2}
		for i, h := range hosts { // each reaches another node first, and at the same time
			h.Links[i].Set(func(l *locktest.Link) { l.Out = time.Millisecond })
			h.Links[1-i].Set(func(l *locktest.Link) { l.Out = 2 * time.Millisecond })
		}
		began := time.Now()
		var wg sync.WaitGroup
		for _, h := range hosts {
			wg.Go(func() { locktest.MustLock(t, h.Client, "gpu", opts) })
		}
		wg.Wait()
		locktest.WantTook(t, began, 0, time.Second)
	})
}
