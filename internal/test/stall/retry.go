package stall

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lateTries is how often a test is run if its runs come too late to show
// anything.
const lateTries = 30

// Retry runs a test that can find that it came too late to show anything: it
// says so with TooLate, and is run again, at most thirty times in all. No other
// run is repeated: what fails in any run fails the test, however busy the
// machine is, and so does a TooLate after it.
//
// The test gets a TB of its own for each run, with its own context and cleanups.
func Retry(t testing.TB, test func(t testing.TB)) {
	t.Helper()
	Watch()
	for range lateTries {
		a := &attempt{TB: t}
		a.run(test)
		switch {
		case t.Failed():
			t.FailNow()
		case !a.late.Load():
			return
		}
	}
	t.Fatalf("all of %d runs came too late to tell", lateTries)
}

// TooLate ends a run of Retry that shows nothing: by the test's own measurement,
// its steps took longer than the state that it checks had to last. The test calls
// it before it judges. Outside of Retry, and after a failure, it fails the test.
func TooLate(t testing.TB, format string, args ...any) {
	t.Helper()
	a, ok := t.(*attempt)
	if !ok || t.Failed() {
		t.Fatalf(format, args...)
	}
	// scripts/test.sh names every line with this text.
	t.Logf("too late to tell; running it again: "+format, args...)
	a.late.Store(true)
	runtime.Goexit()
}

// In ends the run with TooLate if more than the limit has passed since then: what
// was to last for so long may be over.
func In(t testing.TB, limit time.Duration, since time.Time) {
	t.Helper()
	if took := time.Since(since); took > limit {
		TooLate(t, "%v went by, and what this relies on lasts %v", took, limit)
	}
}

// Busy ends the run with TooLate if a timer of this process was late by more than
// the limit since then: a time, an order or a lease that is kept shows nothing on a
// machine that gives nobody a turn. A test calls it before it judges one of those,
// and never before it judges a promise.
func Busy(t testing.TB, limit time.Duration, since time.Time) {
	t.Helper()
	if late := Longest(since); late > limit {
		TooLate(t, "timers were up to %v late, and this relies on %v", late, limit)
	}
}

// attempt is one run. What it reports is reported for the whole test.
type attempt struct {
	testing.TB
	ctx  context.Context
	late atomic.Bool // TooLate was called

	mu       sync.Mutex
	cleanups []func()
}

// run runs the test and its cleanups on goroutines that FailNow can end.
func (a *attempt) run(test func(t testing.TB)) {
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithCancel(a.TB.Context())
	goAndWait(func() { test(a) })
	cancel()
	for {
		a.mu.Lock()
		n := len(a.cleanups)
		if n == 0 {
			a.mu.Unlock()
			return
		}
		f := a.cleanups[n-1]
		a.cleanups = a.cleanups[:n-1]
		a.mu.Unlock()
		goAndWait(f)
	}
}

func goAndWait(f func()) {
	var done sync.WaitGroup
	done.Go(f)
	done.Wait()
}

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}
