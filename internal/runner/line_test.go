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
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

func TestOneCallerOfAProcessAsksForAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 100
		h := locktest.NewHosts(t, 1, 5, redlatch.Options{})[0]
		first := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
		synctest.Wait() // until all nodes have granted it: a majority is enough
		l := &line{t: t}
		for i := range callers {
			l.join(h.Client, fmt.Sprintf("%03d", i), 0, redlatch.LockOptions{})
		}
		waiting := h.Links[0].Count(node.OpAcquire)
		time.Sleep(10 * time.Second)
		if asked := h.Links[0].Count(node.OpAcquire) - waiting; waiting > 2 || asked > 26 {
			t.Errorf("%d callers asked a node %d times at once and %d times in 10 s, want as one", callers, waiting-1, asked)
		}
		first.Release(t.Context())
		l.all.Wait()
		if served := l.order(); !slices.IsSorted(served) || len(served) != callers {
			t.Errorf("served in the order %v", served)
		}
	})
}

func TestCallerInLineIsHeldToItsOwnBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := locktest.NewHosts(t, 1, 3, redlatch.Options{Label: "us"})[0]
		first := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
		front := make(chan *redlatch.Lease)
		go func() { front <- locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{}) }()
		time.Sleep(time.Millisecond)

		start := time.Now()
		_, err := h.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 3 * time.Second})
		var held *redlatch.HeldError
		if took := time.Since(start); !errors.As(err, &held) || len(held.Holders) == 0 || took != 3*time.Second {
			t.Errorf("a wait of 3 s in line ended after %v with %v, want who holds the lock", took, err)
		}

		ctx := locktest.Within(t, time.Second)
		_, err = h.Lock(ctx, "job", nil)
		locktest.WantErr(t, err, context.DeadlineExceeded)

		// Neither blocks the others now.
		first.Release(t.Context())
		l := <-front
		time.Sleep(time.Millisecond)
		l.Release(t.Context())
		locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{}).Release(t.Context())
	})
}

func TestCloseEndsThoseInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := locktest.NewHosts(t, 1, 3, redlatch.Options{})[0]
		locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
		errs := make(chan error)
		for range 5 {
			go func() {
				_, err := h.Lock(t.Context(), "job", nil)
				errs <- err
			}()
			synctest.Wait()
		}
		start := time.Now()
		h.Close()
		for range 5 {
			locktest.WantErr(t, <-errs, redlatch.ErrClosed)
		}
		locktest.WantTook(t, start, 0, 0)
		locktest.WantFree(t, h.Links, "job")
	})
}

// TestOtherNumberOfSlotsIsAnErrorThatNamesBoth also has a caller of the same client
// that waits for one of the slots in use. The other caller does not wait behind it.
func TestOtherNumberOfSlotsIsAnErrorThatNamesBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
		two := redlatch.LockOptions{Slots: 2}
		one := locktest.MustLock(t, c, "gpu", two)
		locktest.MustLock(t, c, "gpu", two)
		three := func() {
			t.Helper()
			began := time.Now()
			_, err := c.Lock(t.Context(), "gpu", &redlatch.LockOptions{Slots: 3, Wait: 8 * time.Second})
			var bad *redlatch.ConfigError
			if !errors.As(err, &bad) || bad.Field != "Slots" || bad.Value != 3 || !strings.Contains(bad.Bound, `2: "gpu" is held with 2 slots`) {
				t.Errorf("3 slots beside 2: the error is %v", err)
			}
			locktest.WantTook(t, began, 0, time.Second)
		}
		three()
		waited := make(chan *redlatch.Lease)
		go func() { waited <- locktest.MustLock(t, c, "gpu", two) }()
		time.Sleep(100 * time.Millisecond)
		three()
		one.Release(t.Context())
		if l := <-waited; l.Slot() != one.Slot() {
			t.Errorf("the waiter has slot %d, want %d, which is free", l.Slot(), one.Slot())
		}
	})
}

// TestCallersOfOneClientAreServedInOrderWhateverTheyWant has callers of one
// client and of two, of all kinds, that hold for longer than a request takes.
// Readers that came one after the other are granted together.
func TestCallersOfOneClientAreServedInOrderWhateverTheyWant(t *testing.T) {
	writer, slot := redlatch.LockOptions{}, redlatch.LockOptions{Slots: 1}
	kinds := []redlatch.LockOptions{writer, reader, reader, writer, slot, reader, slot, slot, writer, writer, reader, reader, slot, writer}
	for _, clients := range []int{1, 2} {
		for _, hold := range []time.Duration{10 * time.Millisecond, time.Second} {
			locktest.Run(t, fmt.Sprintf("%d clients, each holds for %v", clients, hold), func(t *testing.T) {
				hosts := locktest.NewHosts(t, clients, 3, redlatch.Options{})
				for _, h := range hosts {
					h.Links.Set(func(l *locktest.Link) { l.Out = time.Millisecond })
				}
				first := locktest.MustLock(t, hosts[0].Client, "doc", writer)
				synctest.Wait()
				var mu sync.Mutex
				var order []int
				var wg sync.WaitGroup
				for i, opts := range kinds {
					wg.Go(func() {
						l := locktest.MustLock(t, hosts[i%clients].Client, "doc", opts)
						mu.Lock()
						order = append(order, i)
						mu.Unlock()
						time.Sleep(hold)
						l.Release(t.Context())
					})
					time.Sleep(10 * time.Millisecond)
				}
				first.Release(t.Context())
				began := time.Now()
				wg.Wait()
				// Readers that are granted together come in any order.
				for i := range order {
					if kinds[order[i]] == reader && i > 0 && order[i-1] == order[i]+1 && kinds[order[i-1]] == reader {
						order[i-1], order[i] = order[i], order[i-1]
					}
				}
				if len(order) != len(kinds) || !slices.IsSorted(order) {
					t.Errorf("served in the order %v", order)
				}
				// Two pairs of readers take one turn each.
				if most := time.Duration(len(kinds)-2)*hold + time.Second; time.Since(began) > most {
					t.Errorf("it took %v, want %v at the most", time.Since(began), most)
				}
			})
		}
	}
}

func TestCallerThatKnowsNoClockIsQueuedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 1, 3, redlatch.Options{})
		locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // the lock is on all nodes, or the caller would get the third for a moment
		links, nodes := hosts[0].Links, []redlatch.Node{}
		for _, l := range links {
			nodes = append(nodes, clockless{locktest.NewLink(t, l.Node)})
		}
		nodes[2].(clockless).Freeze()
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		ctx := locktest.Within(t, 10*time.Second)
		c.Lock(ctx, "job", nil)
		if n := nodes[0].(clockless).Count(node.OpAcquire); n > 40 {
			t.Errorf("a node was asked %d times in 10 s", n)
		}
	})
}

// clockless is a node that reports neither its identity nor its time until it
// is asked for a lock.
type clockless struct{ *locktest.Link }

func (clockless) Identity(context.Context) (string, time.Time, error) {
	return "", time.Time{}, nil
}
