package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// nodeWitness also records what nodes do.
type nodeWitness struct{ witness }

func (w *nodeWitness) NodeEnd(e redlatch.NodeEnd) {
	w.note("node %s %v: %v %v after %v", e.Node, e.Op, e.Status, e.Err != nil, e.Elapsed)
}

func (w *nodeWitness) NodeChange(h redlatch.NodeHealth) {
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
		links, nodes := locktest.NewLinks(t, 3)
		w := &nodeWitness{}
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: w})
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
		links[1].Set(func(l *locktest.Link) { l.Refuse = nil })
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
		for _, l := range links[1:] {
			l.Set(func(l *locktest.Link) { l.Back = time.Millisecond }) // after the failure
		}
		var ends []redlatch.RoundEnd
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: roundsOf{f: func(e redlatch.RoundEnd) { ends = append(ends, e) }}})
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

// roundsOf is a RoundObserver that calls a function.
type roundsOf struct{ f func(redlatch.RoundEnd) }

func (r roundsOf) LockStart(ctx context.Context, _ redlatch.LockStart) context.Context { return ctx }
func (r roundsOf) LockEnd(context.Context, redlatch.LockEnd)                           {}
func (r roundsOf) RoundEnd(_ context.Context, e redlatch.RoundEnd)                     { r.f(e) }

// slowStart is a LeaseObserver that does something before it notes a start.
type slowStart struct {
	witness
	before func()
}

func (s *slowStart) LeaseStart(ctx context.Context, l redlatch.LeaseStart) context.Context {
	s.before()
	return s.witness.LeaseStart(ctx, l)
}

func TestLeaseThatEndsBeforeItsStartIsReportedEndsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 1)
		w := &slowStart{before: func() { time.Sleep(time.Minute) }}
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: w})
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
		links, nodes := locktest.NewLinks(t, 1)
		var w witness
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: &w})
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

func TestObserversPassEverythingOnToEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		first, second := &nodeWitness{}, &witness{}
		var third counter
		c := locktest.NewClient(t, nodes, redlatch.Options{Observer: redlatch.Observers(first, second, &third)})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		c.TryLock(t.Context(), "job", nil)
		l.Release(t.Context())
		time.Sleep(time.Second)
		var nodeless []string
		for _, call := range first.calls() {
			if !strings.HasPrefix(call, "node ") {
				// The second finds in its context what the first has put there.
				nodeless = append(nodeless, strings.Replace(call, "10s, span=job", "10s, span=lease of job", 1))
			}
		}
		if !slices.Equal(nodeless, second.calls()) || len(second.calls()) < 8 {
			t.Errorf("the first was notified of\n%q, the second of\n%q", nodeless, second.calls())
		}
		if first.saw("node ") < 9 || third.locks != 2 {
			t.Errorf("answers: %d, locks: %d", first.saw("node "), third.locks)
		}
	})
}

func TestNamePattern(t *testing.T) {
	for name, want := range map[string]string{
		"orders/42":                "orders/*",
		"nightly":                  "nightly",
		"a:b.c d/e":                "a:b.c d/e",
		"user-42":                  "*",
		"jobs/2026-11-16/import":   "jobs/*/import",
		strings.Repeat("x", 41):    "*",
		strings.Repeat("x", 40):    strings.Repeat("x", 40),
		"a/\u202eb\u200f":          "a/b",
		"<script>":                 "<script>",
		"bestellungen/Größe":       "bestellungen/Größe",
		"orders/٤٢":                "orders/*",
		"":                         "",
		"tenant/7/":                "tenant/*/",
		"f47ac10b-58cc-4372-a567-": "*",
	} {
		if got := redlatch.NamePattern(name); got != want {
			t.Errorf("NamePattern(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestOutcome(t *testing.T) {
	c := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{})
	locktest.MustLock(t, c, "job", redlatch.LockOptions{})
	_, held := c.TryLock(t.Context(), "job", nil)
	_, bad := c.TryLock(t.Context(), "", nil)
	for want, err := range map[string]error{
		"ok": nil, "held": held, "config": bad, "other": errors.New("x"),
		"no_quorum": &redlatch.QuorumError{}, "closed": redlatch.ErrClosed,
		"released":     fmt.Errorf("%w: %w", redlatch.ErrReleased, redlatch.ErrClosed),
		"max_hold":     &redlatch.LostError{Err: redlatch.ErrMaxHold},
		"taken":        &redlatch.LostError{Err: &redlatch.QuorumError{}},
		"not_extended": &redlatch.LostError{},
		"canceled":     fmt.Errorf("%w while waiting", context.Canceled),
		"deadline":     context.DeadlineExceeded,
		"changing":     redlatch.ErrChanging,
	} {
		if got := redlatch.Outcome(err); got != want {
			t.Errorf("Outcome(%v) = %q, want %q", err, got, want)
		}
	}
}
