package redlatch_test

import (
	"cmp"
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
	"github.com/redlatch/redlatch/observe"
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

func (w *witness) LockStart(ctx context.Context, s observe.LockStart) context.Context {
	w.note("start %s on %d", s.Name, s.Nodes)
	return context.WithValue(ctx, spanKey{}, s.Name)
}

func (w *witness) LockEnd(ctx context.Context, e observe.LockEnd) {
	w.note("end %s span=%v rounds=%d err=%v", e.Name, ctx.Value(spanKey{}), e.Rounds, e.Err != nil)
}

func (w *witness) RoundEnd(ctx context.Context, e observe.RoundEnd) {
	w.note("round %v of %s won=%v", e.Op, e.Name, e.Won)
}

func (w *witness) LeaseStart(ctx context.Context, s observe.LeaseStart) context.Context {
	w.note("lease of %s for %v, span=%v attached=%v", s.Name, s.TTL, ctx.Value(spanKey{}), s.Attached)
	return context.WithValue(ctx, spanKey{}, "lease of "+s.Name)
}

func (w *witness) LeaseEnd(ctx context.Context, e observe.LeaseEnd) {
	w.note("%v: %v after %v", ctx.Value(spanKey{}), e.Cause, e.Held)
}

// TestObserversAreToldOfEverything has three observers, of which one is told of nodes
// too. A later one finds in its context what an earlier one has put there.
func TestObserversAreToldOfEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &nodeWitness{}, &witness{}
		var third counter
		_, c := locktest.New(t, 3, redlatch.Options{Observer: observe.Join(first, second, &third), Prefix: "prefix:"})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		c.TryLock(t.Context(), "job", nil)
		time.Sleep(time.Second)
		l.Extend(t.Context())
		l.Release(t.Context())
		time.Sleep(time.Second)
		want := []string{
			"start job on 3", "round acquire of job won=true", "lease of job for 10s, span=job attached=false", "end job span=job rounds=1 err=false",
			"start job on 3", "round acquire of job won=false", "end job span=job rounds=1 err=true",
			"round extend of job won=true",
			"lease of job: redlatch: lock is released after 1s", "round release of job won=true",
		}
		nodeless := slices.DeleteFunc(first.calls(), func(call string) bool { return strings.HasPrefix(call, "node ") })
		if !slices.Equal(nodeless, want) {
			t.Errorf("the first was notified of\n%q, want\n%q", nodeless, want)
		}
		if want[2] = strings.Replace(want[2], "span=job", "span=lease of job", 1); !slices.Equal(second.calls(), want) {
			t.Errorf("the second was notified of\n%q, want\n%q", second.calls(), want)
		}
		if first.saw("node ") < 12 || third.locks != 2 {
			t.Errorf("answers: %d, locks: %d", first.saw("node "), third.locks)
		}
	})
}

// places records what it is notified of while a caller waits for a lock.
type places struct {
	witness
	waits []observe.Waiting
}

func (p *places) Waiting(_ context.Context, w observe.Waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = append(p.waits, w)
}

func (p *places) last() observe.Waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waits) == 0 {
		return observe.Waiting{}
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
		must(t, err)
		l, err = b.Attach(t.Context(), handle)
		must(t, err)
		l.Extend(t.Context())
		l.Release(t.Context())
		ops := map[string]bool{}
		for _, call := range w.calls() {
			if strings.Contains(call, "one:") || strings.Contains(call, "two:") {
				t.Error(call)
			}
			ops[strings.Join(strings.Fields(call)[:2], " ")] = true
		}
		for _, want := range []string{"start job", "end job", "lease of", "round acquire", "round yield", "round extend", "round release"} {
			if !ops[want] {
				t.Errorf("there was no call %q", want)
			}
		}
	})
}

// nodeWitness also records what nodes do.
type nodeWitness struct{ witness }

func (w *nodeWitness) NodeEnd(e observe.NodeEnd) {
	w.note("node %s %v: %v %v after %v", e.Node, e.Op, e.Status, e.Err != nil, e.Elapsed)
}

func (w *nodeWitness) NodeChange(h observe.NodeHealth) {
	w.note("change %s up=%v quarantined=%v", h.Node, h.Up, h.Quarantined)
}

// calls returns what it was notified of so far.
func (w *witness) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.noted)
}

// saw returns how many of the calls contain the text.
func (w *witness) saw(text string) (n int) {
	for _, call := range w.calls() {
		if strings.Contains(call, text) {
			n++
		}
	}
	return n
}

func TestNodeObserverIsNotifiedOfEachAnswerAlsoOfALateOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		for i, l := range links {
			l.Set(func(l *locktest.Link) { l.Back = time.Duration(i+1) * 10 * time.Millisecond })
		}
		w := &nodeWitness{}
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: w})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		if n := w.saw("node memory:3 acquire"); n != 0 {
			t.Errorf("the third node has answered %d times, though the lock was returned after two", n)
		}
		time.Sleep(time.Second)
		for i, took := range []string{"10ms", "20ms", "30ms"} {
			if want := fmt.Sprintf("node memory:%d acquire: granted false after %s", i+1, took); w.saw(want) != 1 {
				t.Errorf("there was no call %q: %q", want, w.calls())
			}
		}
	})
}

func TestNodeThatStopsAnsweringChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &nodeWitness{}
		links, c := locktest.New(t, 3, redlatch.Options{Observer: w})
		lock := func() {
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
			l.Release(t.Context())
			time.Sleep(time.Second)
		}
		up := func() (up []bool) {
			for _, h := range c.Nodes() {
				up = append(up, h.Up)
			}
			return up
		}
		lock()
		if !slices.Equal(up(), []bool{true, true, true}) || w.saw("change") > 0 {
			t.Errorf("at first: %v, %q", c.Nodes(), w.calls())
		}
		links[1].Cut()
		lock()
		lock()
		if !slices.Equal(up(), []bool{true, false, true}) || w.saw("change memory:2 up=false") != 1 {
			t.Errorf("with one node cut off: %v, %q", c.Nodes(), w.calls())
		}
		links[1].Mend()
		time.Sleep(10 * time.Second)
		lock()
		if !slices.Equal(up(), []bool{true, true, true}) || w.saw("change memory:2 up=true") != 1 {
			t.Errorf("afterwards: %v, %q", c.Nodes(), w.calls())
		}
		for _, h := range c.Nodes() {
			if !h.ClockKnown || h.Clock != 0 || h.WrongClock {
				t.Errorf("clock of %+v", h)
			}
		}
	})
}

func TestRoundEndSaysWhatEachNodeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		links[0].Cut()
		links[1:].Set(func(l *locktest.Link) { l.Back = time.Millisecond }) // after the failure
		var ends []observe.RoundEnd
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: locktest.Rounds(func(e observe.RoundEnd) { ends = append(ends, e) })})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		if len(ends) == 0 {
			t.Fatal("there was no round")
		}
		last := ends[len(ends)-1]
		if !last.Won || len(last.Nodes) != 3 || last.Nodes[0].Err == nil || last.Nodes[1].Reply.Status != node.Granted || last.Nodes[2].Node != "memory:3" {
			t.Errorf("the round ended with %v", last.Nodes)
		}
	})
}

// leaseEvents records the events of leases, with the number of the caller.
type leaseEvents struct {
	witness
	tokens sync.Map // by the caller: the token at the start of its lease
}

// token returns that of a caller; 0 if its lease has not begun.
func (w *leaseEvents) token(caller int) redlatch.Token {
	token, _ := w.tokens.Load(caller)
	begun, _ := token.(redlatch.Token)
	return begun
}

type callerKey struct{}

func (w *leaseEvents) LockEnd(ctx context.Context, e observe.LockEnd) {
	w.note("%v has it: %v, %v", ctx.Value(callerKey{}), e.Token == w.token(ctx.Value(callerKey{}).(int)), e.Err)
}

func (w *leaseEvents) LeaseStart(ctx context.Context, s observe.LeaseStart) context.Context {
	caller := ctx.Value(callerKey{}).(int)
	w.tokens.Store(caller, s.Token)
	w.note("%d begins: %v", caller, caller == 0 || s.Token > w.token(caller-1))
	return ctx
}

func (w *leaseEvents) LeaseEnd(ctx context.Context, e observe.LeaseEnd) {
	caller := ctx.Value(callerKey{}).(int)
	w.note("%d ends: %v after %v, %s", caller, e.Token == w.token(caller), e.Held, observe.Outcome(e.Cause))
}

func (w *leaseEvents) RoundEnd(context.Context, observe.RoundEnd) {}

// TestObserverIsNotifiedOfEachLeaseThatIsPassedOn has five callers of one client
// hold a lock one after the other, each a little longer than the one before, and
// longer than a round. The last one loses it.
func TestObserverIsNotifiedOfEachLeaseThatIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		links.Set(func(l *locktest.Link) { l.Out, l.Back = 500*time.Microsecond, 500*time.Microsecond })
		w := &leaseEvents{}
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: w})
		const callers = 5
		hold := func(i int) time.Duration { return 2*time.Millisecond + time.Duration(i)*100*time.Microsecond }
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				ctx := context.WithValue(t.Context(), callerKey{}, i)
				l, err := c.Lock(ctx, "job", nil)
				must(t, err)
				time.Sleep(hold(i))
				if i == callers-1 {
					for _, link := range links {
						if _, err := link.Node.Do(ctx, node.Request{Op: node.OpBreak, Name: "job", Fencing: node.Fencing{Token: l.Token() + 1000, Window: time.Hour, Retention: time.Hour}}); err != nil {
							t.Error(err)
						}
					}
					l.Extend(ctx)
				}
				l.Release(ctx)
			})
			time.Sleep(100 * time.Microsecond)
		}
		all.Wait()
		synctest.Wait() // Release may return before the end of the last lease is reported
		var want []string
		for i := range callers {
			end := fmt.Sprintf("%d ends: true after %v, released", i, hold(i))
			if i == callers-1 {
				end = fmt.Sprintf("%d ends: true after %v, taken", i, hold(i)+time.Millisecond)
			}
			want = append(want, fmt.Sprintf("%d begins: true", i), fmt.Sprintf("%d has it: true, <nil>", i), end)
		}
		got := slices.DeleteFunc(w.calls(), func(call string) bool { return strings.HasPrefix(call, "start") })
		// The end of one lease may be told after the start of the next.
		slices.SortStableFunc(got, func(a, b string) int { return cmp.Compare(a[0], b[0]) })
		if !slices.Equal(got, want) {
			t.Errorf("notified of\n%q, want\n%q", got, want)
		}
		if n := links[0].Count(node.OpRelease); n > 2 {
			t.Errorf("%d releases: the lease was not passed on, and this test shows nothing", n)
		}
	})
}

// slowStart is a LeaseObserver that does something before it notes a start.
type slowStart struct {
	witness
	before func()
}

func (s *slowStart) LeaseStart(ctx context.Context, l observe.LeaseStart) context.Context {
	s.before()
	return s.witness.LeaseStart(ctx, l)
}

func TestLeaseThatEndsBeforeItsStartIsReportedEndsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowStart{before: func() { time.Sleep(time.Minute) }}
		_, c := locktest.New(t, 1, redlatch.Options{Observer: w})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		synctest.Wait()
		start := slices.IndexFunc(w.calls(), func(s string) bool { return strings.HasPrefix(s, "lease of job for") })
		end := slices.IndexFunc(w.calls(), func(s string) bool { return strings.Contains(s, "is lost, held since") })
		if start < 0 || end < start || w.saw("is lost") != 1 {
			t.Errorf("start at %d, end at %d: %q", start, end, w.calls())
		}
	})
}

func TestLeaseThatNoCallerGotHasNoStartAndNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		links, c := locktest.New(t, 1, redlatch.Options{Observer: &w})
		ctx, cancel := context.WithCancel(t.Context())
		links[0].Set(func(l *locktest.Link) { l.Hook = func(node.Request) { cancel() } })
		if _, err := c.Lock(ctx, "job", nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(time.Minute)
		if w.saw("lease of job for")+w.saw("lease of job:") != 0 || w.saw("end job") != 1 {
			t.Errorf("notified of %q", w.calls())
		}
	})
}
