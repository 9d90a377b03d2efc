package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// line has callers of one process, or of several, wait for one name, one after the
// other, and records the order in which they are served.
type line struct {
	t      *testing.T
	mu     sync.Mutex
	served []string
	last   *redlatch.Lease
	all    sync.WaitGroup
}

// join has a caller wait, hold the lock and release it.
func (l *line) join(c *redlatch.Client, who string, hold time.Duration, opts redlatch.LockOptions) {
	l.all.Go(func() {
		lease := locktest.MustLock(l.t, c, "job", opts)
		l.mu.Lock()
		// The holder before has it no longer, and had a lower token.
		if l.last != nil && (l.last.Context().Err() == nil || l.last.Err() == nil || l.last.Token() >= lease.Token()) {
			l.t.Errorf("%s has token %d, and the one before, with %d, has ended: %v, %v", who, lease.Token(), l.last.Token(), l.last.Context().Err(), l.last.Err())
		}
		l.last = lease
		l.served = append(l.served, who)
		l.mu.Unlock()
		time.Sleep(hold)
		if err := lease.Err(); err != nil {
			l.t.Errorf("%s: %v", who, err)
		}
		if err := lease.Release(l.t.Context()); err != nil {
			l.t.Errorf("%s: release: %v", who, err)
		}
	})
	time.Sleep(100 * time.Microsecond)
	synctest.Wait()
}

// slowEnds is an observer that takes 200 ms for the end of a lease.
type slowEnds struct{ observe.Observer }

func (slowEnds) LeaseStart(ctx context.Context, _ observe.LeaseStart) context.Context { return ctx }
func (slowEnds) LeaseEnd(context.Context, observe.LeaseEnd)                           { time.Sleep(200 * time.Millisecond) }
func (slowEnds) LockStart(ctx context.Context, _ observe.LockStart) context.Context   { return ctx }
func (slowEnds) LockEnd(context.Context, observe.LockEnd)                             {}

// TestNextCallerDoesNotWaitForTheObserverOfTheLast passes a lease on while the observer
// takes long. Only the caller that releases waits for it.
func TestNextCallerDoesNotWaitForTheObserverOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{Observer: slowEnds{}})
		l, start := line{t: t}, time.Now()
		for i := range 5 {
			l.join(c, fmt.Sprint(i), 10*time.Millisecond, redlatch.LockOptions{})
		}
		for len(l.order()) < 5 {
			time.Sleep(time.Millisecond)
		}
		locktest.WantTook(t, start, 0, 500*time.Millisecond)
		l.all.Wait()
	})
}

// holder returns the lease of the one that was served last; order has all of them.
func (l *line) holder() *redlatch.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *line) order() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.served)
}

// crowd is a line of so many callers of one client, of which the first has the
// lock and the second asks the nodes.
func crowd(t *testing.T, h *locktest.Host, callers int, hold time.Duration, opts redlatch.LockOptions) *line {
	l := &line{t: t}
	for i := range callers {
		l.join(h.Client, string(rune('a'+i)), hold, opts)
	}
	return l
}

// slowHosts returns clients whose nodes answer after a millisecond.
func slowHosts(t *testing.T, clients, nodes int, opts redlatch.Options) []*locktest.Host {
	hosts := locktest.NewHosts(t, clients, nodes, opts)
	for _, h := range hosts {
		h.Links.Set(func(l *locktest.Link) { l.Out, l.Back = 500*time.Microsecond, 500*time.Microsecond })
	}
	return hosts
}

func TestLeaseIsPassedOnWithoutAskingTheNodes(t *testing.T) {
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var opts redlatch.Options
			if off {
				clientaccess.SetNoHandOver(&opts)
			}
			h := slowHosts(t, 1, 3, opts)[0]
			l := crowd(t, h, 20, 3*time.Millisecond, redlatch.LockOptions{})
			l.all.Wait()
			if !slices.IsSorted(l.served) || len(l.served) != 20 {
				t.Errorf("served in the order %v", l.served)
			}
			acquires, releases := h.Links[0].Count(node.OpAcquire), h.Links[0].Count(node.OpRelease)
			if passed := releases <= 3 && acquires <= 5; passed == off {
				t.Errorf("hand-over off: %v; a node was asked for the lock %d times, and for its release %d times", off, acquires, releases)
			}
		})
	}
}

// TestExtensionInFlightServesTheNextHolder has nodes answer after the lease was
// passed on. A round takes longer than a holder has the lock, and less than two
// holders do. So if the tokens for the next callers are asked for when one is left,
// they are there in time: in a row of passes nobody waits for the nodes. A row is
// 100 ms long, and begins with three rounds that somebody waits for: the release at
// the end of the row before, the acquisition, and the first tokens.
func TestExtensionInFlightServesTheNextHolder(t *testing.T) {
	const (
		callers, each = 16, 10
		hold          = 2 * time.Millisecond
		round         = 3 * time.Millisecond
		held          = callers * each * hold
		row           = 100 * time.Millisecond // passTime
		rows          = (held + row - 1) / row
		most          = held + rows*3*round
	)
	synctest.Test(t, func(t *testing.T) {
		h := slowHosts(t, 1, 3, redlatch.Options{})[0]
		h.Links.Set(func(l *locktest.Link) { l.Out, l.Back = round/2, round/2 })
		start := time.Now()
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				for range each {
					l := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
					time.Sleep(hold)
					l.Release(t.Context())
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took > most {
			t.Errorf("%d leases of %v took %v, want at most %v", callers*each, hold, took, most)
		} else {
			t.Log(took)
		}
	})
}

// TestLeaseThatWasPassedOnDoesNothingToTheNext has a former holder do to its lease
// all that it can, while the next one has the lock.
func TestLeaseThatWasPassedOnDoesNothingToTheNext(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*redlatch.Lease) error
		want error
	}{
		"release":   {func(l *redlatch.Lease) error { return l.Release(context.Background()) }, nil},
		"handle":    {func(l *redlatch.Lease) error { l.Handle(); return nil }, nil}, // has its lease not be passed on
		"extend":    {func(l *redlatch.Lease) error { return l.Extend(context.Background()) }, redlatch.ErrReleased},
		"downgrade": {func(l *redlatch.Lease) error { return l.Downgrade(context.Background()) }, redlatch.ErrReleased},
		"detach":    {func(l *redlatch.Lease) error { _, err := l.Detach(); return err }, redlatch.ErrReleased},
	} {
		locktest.Run(t, name, func(t *testing.T) { testFormerHolder(t, c.do, c.want) })
	}
}

func testFormerHolder(t *testing.T, do func(*redlatch.Lease) error, want error) {
	h := slowHosts(t, 1, 3, redlatch.Options{})[0]
	l := crowd(t, h, 6, 5*time.Millisecond, redlatch.LockOptions{})
	passes := 0
	for former := l.holder(); len(l.order()) < 5; time.Sleep(100 * time.Microsecond) {
		holder := l.holder()
		if holder == former || former == nil {
			former = holder
			continue
		}
		releases, waiting := h.Links[0].Count(node.OpRelease), len(l.order())
		if err := do(former); !errors.Is(err, want) {
			t.Errorf("it gets %v, want %v", err, want)
		}
		synctest.Wait()
		if err := holder.Err(); err != nil || holder.Remaining() <= 0 || len(l.order()) != waiting {
			t.Errorf("the next holder has %v, for %v, and %d were served after %d", err, holder.Remaining(), len(l.order()), waiting)
		}
		if former.Remaining() > 0 || former.Token() >= holder.Token() {
			exclusion.Never(t, "the former one has %v left, and token %d before %d", former.Remaining(), former.Token(), holder.Token())
		}
		if ago, left := time.Since(former.Deadline()), time.Until(holder.Deadline()); ago < 0 || ago > 100*time.Microsecond || (left-holder.Remaining()).Abs() > time.Microsecond {
			t.Errorf("the former one ended %v ago, and the next one is valid for %v, and for %v by its deadline", ago, holder.Remaining(), left)
		}
		if h.Links[0].Count(node.OpRelease) == releases {
			passes++
		}
		former = holder
	}
	l.all.Wait()
	if releases := h.Links[0].Count(node.OpRelease); passes < 3 || releases > 2 {
		t.Errorf("%d passes and %d releases: this test shows nothing", passes, releases)
	}
}

func TestPassOvertakesNobodyElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := slowHosts(t, 2, 3, redlatch.Options{})
		// So short that what the nodes say of their queues is known in time: the lock
		// is passed on until the other one is the next.
		const hold = 2200 * time.Microsecond
		l := crowd(t, hosts[0], 5, hold, redlatch.LockOptions{})
		time.Sleep(3 * time.Millisecond)
		l.join(hosts[1].Client, "other", hold, redlatch.LockOptions{})
		time.Sleep(3 * time.Millisecond)
		for _, who := range []string{"x", "y", "z"} {
			l.join(hosts[0].Client, who, hold, redlatch.LockOptions{})
		}
		l.all.Wait()
		if want := []string{"a", "b", "c", "d", "e", "other", "x", "y", "z"}; !slices.Equal(l.served, want) {
			t.Errorf("served in the order %v, want %v", l.served, want)
		}
	})
}

// TestRowOfPassesOvertakesOneElsewhereAtMost has callers of two clients come in
// turn. When one of the first client gets the lock, the next one of the second, whose
// requests for it take longer, is about to ask, and is in no queue yet.
func TestRowOfPassesOvertakesOneElsewhereAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{})
		for i, h := range hosts {
			for _, l := range h.Links {
				l.Set(func(l *locktest.Link) {
					l.Out, l.Back = 50*time.Microsecond, 50*time.Microsecond
					l.Lag = map[node.Op]time.Duration{node.OpAcquire: time.Duration(i) * 400 * time.Microsecond}
				})
			}
		}
		first := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{})
		l := &line{t: t}
		for i := range 24 {
			l.join(hosts[i%2].Client, string(rune('a'+i)), time.Millisecond, redlatch.LockOptions{})
			time.Sleep(8 * time.Millisecond)
		}
		first.Release(t.Context())
		l.all.Wait()
		for i, who := range l.served {
			if later := int(who[0]-'a') - i; later > 2 {
				t.Errorf("%s was served before %d that came earlier: %v", who, later, l.served)
				break
			}
		}
	})
}

func TestLeaseWithAHandleIsNotPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := slowHosts(t, 1, 3, redlatch.Options{})[0]
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				lease := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
				lease.Handle()
				time.Sleep(3 * time.Millisecond)
				lease.Release(t.Context())
			})
			time.Sleep(100 * time.Microsecond)
		}
		all.Wait()
		if n := h.Links[0].Count(node.OpRelease); n < 10 {
			t.Errorf("ten callers with a handle released the lock %d times", n)
		}
	})
}

// TestHandleOfALeaseThatWasPassedOnIsNobodys: the next holder has the same value on
// the nodes.
func TestHandleOfALeaseThatWasPassedOnIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := slowHosts(t, 2, 3, redlatch.Options{})
		// Not whole milliseconds: no release coincides with an answer.
		l := crowd(t, hosts[0], 4, 5500*time.Microsecond, redlatch.LockOptions{})
		time.Sleep(10 * time.Millisecond)
		l.mu.Lock()
		before, served := l.last, len(l.served)
		l.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		if l.mu.Lock(); before.Err() == nil || len(l.served) == served || len(l.served) == 4 {
			t.Fatalf("%d of 4 were served, and the one before: %v; this test shows nothing", len(l.served), before.Err())
		}
		holder := l.last
		l.mu.Unlock()
		handle := before.Handle()
		if lease, err := hosts[1].Attach(t.Context(), handle); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("a lease was resumed that was passed on: %v, %v", lease, err)
		}
		if err := hosts[1].Release(t.Context(), handle); !errors.Is(err, redlatch.ErrLost) {
			t.Errorf("the next holder's lock was released: %v", err)
		}
		if err := holder.Extend(t.Context()); err != nil && !errors.Is(err, redlatch.ErrReleased) {
			t.Errorf("the next holder: %v", err)
		}
		l.all.Wait()
		if releases := hosts[0].Links[0].Count(node.OpRelease); releases > 2 {
			t.Errorf("%d releases: the lease was not passed on, and this test shows nothing", releases)
		}
	})
}

func TestTryLockAsksTheNodesBesideALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := slowHosts(t, 1, 3, redlatch.Options{})[0]
		l := crowd(t, h, 10, 3*time.Millisecond, redlatch.LockOptions{})
		before := h.Links[0].Count(node.OpAcquire)
		if _, err := h.TryLock(t.Context(), "job", nil); !errors.Is(err, redlatch.ErrHeld) {
			t.Errorf("TryLock beside a line: %v", err)
		}
		if h.Links[0].Count(node.OpAcquire) == before {
			t.Error("TryLock did not ask the nodes")
		}
		l.all.Wait()
	})
}

// TestLossOfALeaseSendsTheLineToTheNodes takes the lock away from a holder with
// callers behind it.
func TestLossOfALeaseSendsTheLineToTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := slowHosts(t, 1, 3, redlatch.Options{})[0]
		first := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{TTL: time.Second})
		second := make(chan *redlatch.Lease)
		go func() { second <- locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{TTL: time.Second}) }()
		time.Sleep(5 * time.Millisecond)
		l := &line{t: t}
		for _, who := range []string{"a", "b", "c"} {
			l.join(h.Client, who, time.Millisecond, redlatch.LockOptions{TTL: time.Second})
		}
		first.Release(t.Context())
		holder := <-second // the others wait behind it
		for _, link := range h.Links {
			_, err := link.Node.Do(t.Context(), node.Request{Op: node.OpBreak, Name: "job", Fencing: node.Fencing{Token: holder.Token() + 1000, Window: time.Hour, Retention: time.Hour}})
			must(t, err)
		}
		holder.Extend(t.Context())
		lost := time.Now()
		l.all.Wait()
		locktest.WantTook(t, lost, 0, 10*time.Millisecond)
		if err := holder.Err(); !errors.Is(err, redlatch.ErrLost) || !slices.Equal(l.served, []string{"a", "b", "c"}) {
			t.Errorf("the holder has %v, and those behind it are served in the order %v", err, l.served)
		}
	})
}

// TestCallersThatLeaveALineLoseNothing has callers give up at any time, on servers
// that answer late, and checks that one holds the lock at a time, with a higher
// token, and that all is free at the end.
func TestCallersThatLeaveALineLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := slowHosts(t, 1, 3, redlatch.Options{})[0]
		var holders, had atomic.Int32
		var last atomic.Uint64
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for n := range 60 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*7+n*13)%29)*time.Millisecond)
					lease, err := h.Lock(ctx, "job", nil)
					if err == nil {
						if holders.Add(1) > 1 || last.Swap(uint64(lease.Token())) >= uint64(lease.Token()) {
							exclusion.Never(t, "two holders, or a token that is not higher")
						}
						time.Sleep(time.Duration(n%3) * time.Millisecond)
						had.Add(1)
						holders.Add(-1)
						lease.Release(ctx)
					}
					cancel()
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		if had.Load() < 100 {
			t.Errorf("the lock was had %d times", had.Load())
		}
		for i, link := range h.Links {
			if r, _ := link.Node.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "job"}); r.Status != node.Absent {
				t.Errorf("node %d has the lock at the end: %v", i, r.Status)
			}
		}
	})
}
