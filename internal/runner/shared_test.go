package runner_test

import (
	"context"
	"errors"
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

// holding counts how many leases are held at a time, and which slots.
type holding struct {
	mu      sync.Mutex
	readers int
	writers int
	slots   map[int]bool
	most    int
}

func (h *holding) enter(t *testing.T, l *redlatch.Lease, opts redlatch.LockOptions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case opts.Shared:
		h.readers++
	case opts.Slots > 0:
		if h.slots == nil {
			h.slots = map[int]bool{}
		}
		if h.slots[l.Slot()] || l.Slot() >= opts.Slots {
			exclusion.Never(t, "slot %d of %d is held twice, or is none", l.Slot(), opts.Slots)
		}
		h.slots[l.Slot()] = true
	default:
		h.writers++
	}
	h.most = max(h.most, h.readers+h.writers+len(h.slots))
	if h.writers > 1 || h.writers == 1 && h.readers+len(h.slots) > 0 || h.readers > 0 && len(h.slots) > 0 {
		exclusion.Never(t, "held together: %d writers, %d readers, slots %v", h.writers, h.readers, h.slots)
	}
}

func (h *holding) leave(l *redlatch.Lease, opts redlatch.LockOptions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case opts.Shared:
		h.readers--
	case opts.Slots > 0:
		delete(h.slots, l.Slot())
	default:
		h.writers--
	}
}

func TestReadersHoldTogetherAndExcludeWriters(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
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
		first := locktest.MustLock(t, hosts[0].Client, "doc", reader)
		var order []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		lock := func(c *redlatch.Client, who string, opts redlatch.LockOptions) {
			wg.Go(func() {
				l := locktest.MustLock(t, c, "doc", opts)
				mu.Lock()
				order = append(order, who)
				mu.Unlock()
				time.Sleep(time.Second)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		lock(hosts[1].Client, "writer", redlatch.LockOptions{})
		lock(hosts[2].Client, "reader", reader)
		_, err := hosts[0].Client.TryLock(t.Context(), "doc", &reader)
		locktest.WantErr(t, err, redlatch.ErrHeld)
		must(t, first.Release(t.Context()))
		wg.Wait()
		if !slices.Equal(order, []string{"writer", "reader"}) {
			t.Errorf("they came in the order %q", order)
		}
	})
}

func TestRunOfReadersIsAdmittedTogether(t *testing.T) {
	const count = 16
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, count, 3, redlatch.Options{})
		writer := locktest.MustLock(t, hosts[0].Client, "doc", redlatch.LockOptions{})
		var h holding
		var wg sync.WaitGroup
		for _, host := range hosts {
			wg.Go(func() {
				l := locktest.MustLock(t, host.Client, "doc", reader)
				h.enter(t, l, reader)
				time.Sleep(time.Second)
				h.leave(l, reader)
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		must(t, writer.Release(t.Context()))
		wg.Wait()
		if h.most != count {
			t.Errorf("%d of %d readers held the lock together", h.most, count)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v until all had read for a second", took)
		}
	})
}

func TestReaderThatIsGoneDoesNotBlockThoughOthersExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{TTL: 3 * time.Second})
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
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
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

func TestOtherNumberOfSlotsIsAnErrorThatNamesBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.MustLock(t, c, "gpu", redlatch.LockOptions{Slots: 3})
		_, err := c.Lock(t.Context(), "gpu", &redlatch.LockOptions{Slots: 4})
		var bad *redlatch.ConfigError
		if !errors.As(err, &bad) || bad.Field != "Slots" || bad.Value != 4 || !strings.Contains(bad.Bound, `3: "gpu" is held with 3 slots`) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestBadSharesAreRefused(t *testing.T) {
	_, nodes := locktest.NewLinks(t, 1)
	c := locktest.NewClient(t, nodes, redlatch.Options{})
	for _, opts := range []redlatch.LockOptions{{Slots: -1}, {Slots: 65}, {Slots: 2, Shared: true}} {
		_, err := c.TryLock(t.Context(), "gpu", &opts)
		var bad *redlatch.ConfigError
		if !errors.As(err, &bad) || bad.Field != "Slots" || bad.Value != opts.Slots {
			t.Errorf("%+v: %v, want a ConfigError about Slots", opts, err)
		}
	}
}

func TestCrowdSharesSlotsReadersAndWriters(t *testing.T) {
	for _, kinds := range [][]redlatch.LockOptions{
		{{Slots: 3}}, {{Slots: 1}}, {{Slots: 3}, {}}, {reader, {}}, {reader, reader, reader, {}, {Slots: 2}},
	} {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprintf("%+v on %d", kinds, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hosts := locktest.NewHosts(t, 16, n, redlatch.Options{TTL: 5 * time.Second})
					var h holding
					var wg sync.WaitGroup
					began := time.Now()
					for i, host := range hosts {
						opts := kinds[i%len(kinds)]
						wg.Go(func() {
							for range 5 {
								l := locktest.MustLock(t, host.Client, "res", opts)
								h.enter(t, l, opts)
								time.Sleep(10 * time.Millisecond)
								h.leave(l, opts)
								if err := l.Release(t.Context()); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
					t.Logf("%v for 80 holds, %d at most together", time.Since(began), h.most)
					if want := kinds[0].Slots; len(kinds) == 1 && h.most != want {
						t.Errorf("%d held slots together, want %d", h.most, want)
					}
				})
			})
		}
	}
}

func TestNodesThatGaveAnotherSlotAreRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		opts := redlatch.LockOptions{Slots: 2}
		// On the third node slot 0 is taken, by one that has no majority.
		stray := node.Request{Op: node.OpAcquire, Name: "gpu", Value: "stray", TTL: 2 * time.Second,
			Share: node.Share{Mode: node.Slotted, Slots: 2}}
		if r, err := links[2].Do(t.Context(), stray); err != nil || r.Status != node.Granted {
			t.Fatalf("%v, %v", r, err)
		}
		l := locktest.MustLock(t, c, "gpu", opts)
		if l.Slot() != 0 {
			t.Fatalf("slot %d, want 0, which two nodes gave", l.Slot())
		}
		synctest.Wait()
		look, err := links[2].Look(t.Context(), "gpu")
		if err != nil || len(look.Holders) != 2 || look.Holders[1].Slot != 1 {
			t.Errorf("the third node has %+v, %v; want the lease in slot 1", look.Holders, err)
		}
		time.Sleep(10 * time.Second)
		look, err = links[2].Look(t.Context(), "gpu")
		if err != nil || len(look.Holders) != 1 || look.Holders[0].Slot != 0 || look.Holders[0].Token != l.Token() {
			t.Errorf("the third node has %+v, %v; want the lease in slot 0", look.Holders, err)
		}
		must(t, l.Release(t.Context()))
	})
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
		if err := w.Downgrade(t.Context()); err != nil {
			t.Errorf("downgrade of a reader: %v", err)
		}
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
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		w := locktest.MustLock(t, c, "doc", redlatch.LockOptions{})
		for _, l := range links {
			l.Freeze()
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := w.Extend(t.Context()); err != nil {
				t.Errorf("extend: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := w.Downgrade(t.Context()); err != nil {
				t.Errorf("downgrade: %v", err)
			}
		})
		synctest.Wait()
		for _, l := range links {
			l.Thaw()
		}
		wg.Wait()
		if _, err := c.TryLock(t.Context(), "doc", &reader); err != nil {
			t.Errorf("no reader is let in: %v", err)
		}
	})
}

func TestHandleOfASharedLeaseAndOfASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
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
			if err := back.Err(); err != nil {
				t.Errorf("after a minute: %v", err)
			}
			if text, err = back.Detach(); err != nil {
				t.Fatal(err)
			}
			if err := c.Release(t.Context(), text); err != nil {
				t.Errorf("free: %v", err)
			}
			locktest.WantErr(t, c.Release(t.Context(), text), redlatch.ErrLost)
			must(t, other.Release(t.Context()))
			if _, err := c.TryLock(t.Context(), name, nil); err != nil {
				t.Errorf("after both are free: %v", err)
			}
		}
	})
}

func TestSharedLockInsideItselfIsADeadlock(t *testing.T) {
	_, nodes := locktest.NewLinks(t, 1)
	c := locktest.NewClient(t, nodes, redlatch.Options{})
	err := c.Do(t.Context(), "doc", &reader, func(ctx context.Context, _ *redlatch.Lease) error {
		return c.Do(ctx, "doc", &reader, func(context.Context, *redlatch.Lease) error { return nil })
	})
	locktest.WantErr(t, err, redlatch.ErrDeadlock) // a writer between the two would block both
}

func TestShareIsRepairedWhereOthersHoldTheName(t *testing.T) {
	for _, opts := range []redlatch.LockOptions{reader, {Slots: 3}} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			locktest.MustLock(t, c, "res", opts)
			links[2].Cut()
			second := locktest.MustLock(t, c, "res", opts)
			links[2].Set(func(l *locktest.Link) { l.Refuse = nil })
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
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v until both had a slot", took)
		}
	})
}
