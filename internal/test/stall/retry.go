package stall

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	// tries is how often a test is run at most.
	tries = 3
	// lateTries is how often a test is run if its runs come too late to show
	// anything.
	lateTries = 30
)

// Retry runs a test whose assertions depend on time. If it fails, and a timer
// of this process was late by more than limit during the run, the machine was
// too busy to decide, and the test is run again: three times in all, each with
// a log line that says so. The last failure counts, and so does one during
// which the machine did not stall. A run that TooLate ended is not one of the
// three.
//
// The test gets a TB of its own for each run. It must not skip.
func Retry(t testing.TB, limit time.Duration, test func(t testing.TB)) {
	t.Helper()
	Watch()
	for try, late := 1, 0; ; {
		start := time.Now()
		a := &attempt{TB: t}
		a.run(test)
		stalled := Longest(start)
		if !a.Failed() {
			a.report(t.Logf)
			return
		}
		switch {
		case a.late && late+1 < lateTries:
			late++
			t.Logf("run %d of at most %d came too late to tell; running it again", late, lateTries)
		case a.late:
			a.report(t.Logf)
			t.Errorf("failed; all of %d runs came too late to tell", lateTries)
			return
		case stalled <= limit || try == tries:
			a.report(t.Logf)
			t.Errorf("failed; the latest timer was %v late meanwhile, run %d of %d", stalled, try, tries)
			return
		default:
			t.Logf("run %d of %d failed while the machine was stalled for %v (limit %v); running it again", try, tries, stalled, limit)
			try++
		}
		a.report(func(format string, args ...any) { t.Logf("  "+format, args...) })
	}
}

// TooLate fails a run of Retry that shows nothing: by the test's own
// measurement, its steps took longer than the state that it checks had to last.
// The test is run again, at most thirty times in all. It fails if every run is
// too late.
func TooLate(t testing.TB, format string, args ...any) {
	t.Helper()
	if a, ok := t.(*attempt); ok {
		a.mu.Lock()
		a.late = true
		a.mu.Unlock()
	}
	t.Fatalf(format, args...)
}

// attempt is one run: a testing.TB that keeps its failures to itself.
type attempt struct {
	testing.TB
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	failed   bool
	late     bool // TooLate was called
	lines    []string
	helpers  map[string]bool // functions to which no line is attributed
	cleanups []func()
}

// run runs the test and its cleanups on a goroutine that FailNow can end.
func (a *attempt) run(test func(t testing.TB)) {
	a.ctx, a.cancel = context.WithCancel(a.TB.Context())
	goAndWait(func() { test(a) })
	a.cancel()
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

// report passes on what the run logged.
func (a *attempt) report(logf func(format string, args ...any)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.lines {
		logf("%s", line)
	}
}

// effect is what a line does to the run.
type effect int

const (
	none effect = iota
	fails
	ends // and fails
)

// add records a line, with the place in the test that it comes from.
func (a *attempt) add(does effect, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := callers(3)[0]
	for _, f := range callers(3) {
		if !a.helpers[f.Function] {
			from = f
			break
		}
	}
	a.failed = a.failed || does != none
	a.lines = append(a.lines, fmt.Sprintf("%s:%d: %s", filepath.Base(from.File), from.Line, text))
	if does == ends {
		runtime.Goexit()
	}
}

// Helper attributes a line to the caller of the function that calls this.
func (a *attempt) Helper() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.helpers == nil {
		a.helpers = map[string]bool{}
	}
	a.helpers[callers(2)[0].Function] = true
}

// callers returns the functions on the stack, from the one that is skip above
// this one.
func callers(skip int) []runtime.Frame {
	pcs := make([]uintptr, 20)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip+1, pcs)])
	var all []runtime.Frame
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		all = append(all, f)
	}
	return all
}

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

const noSkip = "a test that may be run again does not skip"

func (a *attempt) Log(args ...any)                   { a.add(none, fmt.Sprint(args...)) }
func (a *attempt) Logf(format string, args ...any)   { a.add(none, fmt.Sprintf(format, args...)) }
func (a *attempt) Error(args ...any)                 { a.add(fails, fmt.Sprint(args...)) }
func (a *attempt) Errorf(format string, args ...any) { a.add(fails, fmt.Sprintf(format, args...)) }
func (a *attempt) Fail()                             { a.add(fails, "failed") }
func (a *attempt) Fatal(args ...any)                 { a.add(ends, fmt.Sprint(args...)) }
func (a *attempt) Fatalf(format string, args ...any) { a.add(ends, fmt.Sprintf(format, args...)) }
func (a *attempt) FailNow()                          { a.add(ends, "failed") }
func (a *attempt) Skip(...any)                       { a.add(ends, noSkip) }
func (a *attempt) Skipf(string, ...any)              { a.add(ends, noSkip) }
func (a *attempt) SkipNow()                          { a.add(ends, noSkip) }
func (a *attempt) Skipped() bool                     { return false }
