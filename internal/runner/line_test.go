package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		var mu sync.Mutex
		var served []int
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				l := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				l.Release(t.Context())
			})
			synctest.Wait() // so that they arrive one after the other
		}
		waiting := h.Links[0].Count(node.OpAcquire)
		time.Sleep(10 * time.Second)
		if asked := h.Links[0].Count(node.OpAcquire) - waiting; waiting > 2 || asked > 26 {
			t.Errorf("%d callers asked a node %d times at once and %d times in 10 s, want as one", callers, waiting-1, asked)
		}
		first.Release(t.Context())
		all.Wait()
		if !slices.IsSorted(served) || len(served) != callers {
			t.Errorf("served in the order %v", served)
		}
	})
}

func TestCrowdInOneProcessStarvesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
		for _, h := range hosts {
			for _, l := range h.Links {
				l.Set(func(l *locktest.Link) { l.Out = 100 * time.Microsecond })
			}
		}
		var had [2]int
		end := time.Now().Add(4 * time.Second)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, callers := range []int{19, 1} {
			for range callers {
				all.Go(func() {
					for time.Now().Before(end) {
						l := locktest.MustLock(t, hosts[i].Client, "job", redlatch.LockOptions{})
						time.Sleep(time.Millisecond)
						l.Release(t.Context())
						mu.Lock()
						had[i]++
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		// One of twenty callers, and so a twentieth of the locks.
		if share := float64(had[1]) / float64(had[0]+had[1]); share < 0.045 || share > 0.06 {
			t.Errorf("one caller beside a crowd of 19 in another process had %.3f of the turns, want 0.05", share)
		}
	})
}

func TestOutageIsReportedToAllInLineTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := locktest.NewHosts(t, 1, 3, redlatch.Options{NodeTimeout: 250 * time.Millisecond})[0]
		for _, l := range h.Links {
			l.Freeze()
		}
		start := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := h.Lock(t.Context(), "job", nil)
				locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			})
		}
		all.Wait()
		if took := time.Since(start); took > redlatch.OutagePatience+500*time.Millisecond {
			t.Errorf("an outage was reported to fifty callers after %v, want within their patience and two node time limits", took)
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

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
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
		h.Close()
		for range 5 {
			locktest.WantErr(t, <-errs, redlatch.ErrClosed)
		}
	})
}

// TestOtherNumberOfSlotsIsAnErrorBesideAWaiterOfTheSameClient has a caller that
// waits for one of the slots in use. The other caller does not wait behind it.
func TestOtherNumberOfSlotsIsAnErrorBesideAWaiterOfTheSameClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		one := locktest.MustLock(t, c, "gpu", redlatch.LockOptions{Slots: 2})
		locktest.MustLock(t, c, "gpu", redlatch.LockOptions{Slots: 2})
		waited := make(chan *redlatch.Lease)
		go func() { waited <- locktest.MustLock(t, c, "gpu", redlatch.LockOptions{Slots: 2}) }()
		time.Sleep(100 * time.Millisecond)

		began := time.Now()
		_, err := c.Lock(t.Context(), "gpu", &redlatch.LockOptions{Slots: 3, Wait: 8 * time.Second})
		var bad *redlatch.ConfigError
		if took := time.Since(began); !errors.As(err, &bad) || bad.Field != "Slots" || took > time.Second {
			t.Errorf("3 slots beside 2: after %v: %v, want a ConfigError at once", took, err)
		}
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
			t.Run(fmt.Sprintf("%d clients, each holds for %v", clients, hold), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hosts := locktest.NewHosts(t, clients, 3, redlatch.Options{})
					for _, h := range hosts {
						for _, l := range h.Links {
							l.Set(func(l *locktest.Link) { l.Out = time.Millisecond })
						}
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
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
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
