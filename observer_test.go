package redlatch_test

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
)

// witness records what it is notified of.
type witness struct {
	mu    sync.Mutex
	noted []string
}

type spanKey struct{}

func (w *witness) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, fmt.Sprintf(format, args...))
}

func (w *witness) LockStart(ctx context.Context, s redlatch.LockStart) context.Context {
	w.note("start %s on %d", s.Name, s.Nodes)
	return context.WithValue(ctx, spanKey{}, s.Name)
}

func (w *witness) LockEnd(ctx context.Context, e redlatch.LockEnd) {
	w.note("end %s span=%v rounds=%d err=%v", e.Name, ctx.Value(spanKey{}), e.Rounds, e.Err != nil)
}

func (w *witness) RoundEnd(ctx context.Context, e redlatch.RoundEnd) {
	w.note("round %v of %s won=%v", e.Op, e.Name, e.Won)
}

func (w *witness) LeaseStart(ctx context.Context, s redlatch.LeaseStart) context.Context {
	w.note("lease of %s for %v, span=%v attached=%v", s.Name, s.TTL, ctx.Value(spanKey{}), s.Attached)
	return context.WithValue(ctx, spanKey{}, "lease of "+s.Name)
}

func (w *witness) LeaseEnd(ctx context.Context, e redlatch.LeaseEnd) {
	w.note("%v: %v after %v", ctx.Value(spanKey{}), e.Cause, e.Held)
}

func TestObserverIsToldOfEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		w := &witness{}
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: w, Prefix: "prefix:"})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		c.TryLock(t.Context(), "job", nil)
		time.Sleep(time.Second)
		l.Extend(t.Context())
		l.Release(t.Context())
		want := []string{
			"start job on 3", "round acquire of job won=true", "lease of job for 10s, span=job attached=false", "end job span=job rounds=1 err=false",
			"start job on 3", "round acquire of job won=false", "end job span=job rounds=1 err=true",
			"round extend of job won=true",
			"lease of job: redlatch: lock is released after 1s", "round release of job won=true",
		}
		if !slices.Equal(w.calls(), want) {
			t.Errorf("notified of\n%q, want\n%q", w.calls(), want)
		}
	})
}

// places records what it is notified of while a caller waits for a lock.
type places struct {
	witness
	waits []redlatch.Waiting
}

func (p *places) Waiting(_ context.Context, w redlatch.Waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = append(p.waits, w)
}

func (p *places) last() redlatch.Waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waits) == 0 {
		return redlatch.Waiting{}
	}
	return p.waits[len(p.waits)-1]
}

func TestWaitObserverIsNotifiedOfPlaceAndHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		holder := locktest.NewClient(t, nodes, redlatch.Options{})
		lease := locktest.MustLock(t, holder, "job", redlatch.LockOptions{})
		synctest.Wait() // until the third node has the lock too
		var seen []*places
		done := make(chan *redlatch.Lease, 3)
		for range 3 {
			p := &places{}
			seen = append(seen, p)
			c := locktest.NewClient(t, nodes, redlatch.Options{Observer: p})
			go func() { done <- locktest.MustLock(t, c, "job", redlatch.LockOptions{}) }()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		for i, p := range seen {
			w := p.last()
			var held *redlatch.HeldError
			if w.Place != i+1 || w.Name != "job" || w.Waited <= 0 || !errors.As(w.Err, &held) || held.Holders[0].Token != lease.Token() {
				t.Errorf("number %d in line was notified of %+v", i+1, w)
			}
		}
		lease.Release(t.Context())
		second := <-done
		time.Sleep(2 * time.Second)
		if w := seen[1].last(); w.Place != 1 {
			t.Errorf("the second, who is the first now, was notified of %+v", w)
		}
		second.Release(t.Context())
		(<-done).Release(t.Context())
		(<-done).Release(t.Context())
	})
}

// TestObserverIsNotGivenThePrefix has a waiter that is notified, one that
// yields its grants, and a lease that a client with another prefix attaches. In
// every call the name is the one that the caller passed.
func TestObserverIsNotGivenThePrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		w := &witness{}
		a := locktest.NewClient(t, nodes, redlatch.Options{Observer: w, Prefix: "one:"})
		b := locktest.NewClient(t, nodes, redlatch.Options{Observer: w, Prefix: "two:"})
		links[0].Take(t, "one:job", "x", time.Second)
		links[1].Take(t, "one:job", "y", time.Second)
		l := locktest.MustLock(t, a, "job", redlatch.LockOptions{}) // a split vote first
		time.AfterFunc(time.Second, func() { l.Release(context.Background()) })
		handle, err := locktest.MustLock(t, a, "job", redlatch.LockOptions{}).Detach() // notified
		if err != nil {
			t.Fatal(err)
		}
		if l, err = b.Attach(t.Context(), handle); err != nil {
			t.Fatal(err)
		}
		l.Extend(t.Context())
		l.Release(t.Context())
		ops := map[string]bool{}
		for _, call := range w.calls() {
			if strings.Contains(call, "one:") || strings.Contains(call, "two:") {
				t.Error(call)
			}
			ops[strings.Join(strings.Fields(call)[:2], " ")] = true
		}
		for _, want := range []string{"start job", "end job", "lease of", "round acquire", "round offer", "round extend", "round release"} {
			if !ops[want] {
				t.Errorf("there was no call %q", want)
			}
		}
	})
}
