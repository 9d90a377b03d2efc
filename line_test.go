package redlatch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

func TestOneCallerOfAProcessAsksForAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 100
		h := newHosts(t, 1, 5, redlatch.Options{})[0]
		first := mustLock(t, h.Client, "job", redlatch.LockOptions{})
		var mu sync.Mutex
		var served []int
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				l := mustLock(t, h.Client, "job", redlatch.LockOptions{})
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				l.Release(t.Context())
			})
			synctest.Wait() // so that they arrive one after the other
		}
		waiting := h.links[0].count(node.OpAcquire)
		time.Sleep(10 * time.Second)
		if asked := h.links[0].count(node.OpAcquire) - waiting; waiting > 2 || asked > 26 {
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
		hosts := newHosts(t, 2, 3, redlatch.Options{})
		for _, h := range hosts {
			for _, l := range h.links {
				l.set(func(l *link) { l.out = 100 * time.Microsecond })
			}
		}
		var had [2]int
		end := time.Now().Add(10 * time.Second)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, callers := range []int{19, 1} {
			for range callers {
				all.Go(func() {
					for time.Now().Before(end) {
						l := mustLock(t, hosts[i].Client, "job", redlatch.LockOptions{})
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
		h := newHosts(t, 1, 3, redlatch.Options{NodeTimeout: 250 * time.Millisecond})[0]
		for _, l := range h.links {
			l.freeze()
		}
		start := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := h.Lock(t.Context(), "job", redlatch.LockOptions{})
				wantErr(t, err, redlatch.ErrNoQuorum)
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
		h := newHosts(t, 1, 3, redlatch.Options{Label: "us"})[0]
		first := mustLock(t, h.Client, "job", redlatch.LockOptions{})
		front := make(chan *redlatch.Lease)
		go func() { front <- mustLock(t, h.Client, "job", redlatch.LockOptions{}) }()
		time.Sleep(time.Millisecond)

		start := time.Now()
		_, err := h.Lock(t.Context(), "job", redlatch.LockOptions{Wait: 3 * time.Second})
		var held *redlatch.HeldError
		if took := time.Since(start); !errors.As(err, &held) || len(held.Holders) == 0 || took != 3*time.Second {
			t.Errorf("a wait of 3 s in line ended after %v with %v, want who holds the lock", took, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = h.Lock(ctx, "job", redlatch.LockOptions{})
		wantErr(t, err, context.DeadlineExceeded)

		// Neither blocks the others now.
		first.Release(t.Context())
		l := <-front
		time.Sleep(time.Millisecond)
		l.Release(t.Context())
		mustLock(t, h.Client, "job", redlatch.LockOptions{}).Release(t.Context())
	})
}

func TestCloseEndsThoseInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosts(t, 1, 3, redlatch.Options{})[0]
		mustLock(t, h.Client, "job", redlatch.LockOptions{})
		errs := make(chan error)
		for range 5 {
			go func() {
				_, err := h.Lock(t.Context(), "job", redlatch.LockOptions{})
				errs <- err
			}()
			synctest.Wait()
		}
		h.Close()
		for range 5 {
			wantErr(t, <-errs, redlatch.ErrClosed)
		}
	})
}

func TestCallerThatKnowsNoClockIsQueuedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := newHosts(t, 1, 3, redlatch.Options{})
		mustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // the lock is on all nodes, or the caller would get the third for a moment
		links, nodes := hosts[0].links, []redlatch.Node{}
		for _, l := range links {
			nodes = append(nodes, clockless{newLink(t, l.Node)})
		}
		nodes[2].(clockless).freeze()
		c := newClient(t, nodes, redlatch.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c.Lock(ctx, "job", redlatch.LockOptions{})
		if n := nodes[0].(clockless).count(node.OpAcquire); n > 40 {
			t.Errorf("a node was asked %d times in 10 s", n)
		}
	})
}

// clockless is a node that reports neither its identity nor its time until it
// is asked for a lock.
type clockless struct{ *link }

func (clockless) Identity(context.Context) (string, time.Time, error) {
	return "", time.Time{}, nil
}
