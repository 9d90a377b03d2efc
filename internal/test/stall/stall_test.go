package stall

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/exclusion"
)

// recorder is the TB of a test that is tried: it records what the test reports.
type recorder struct {
	testing.TB
	failed bool
	text   strings.Builder
}

func (r *recorder) Helper()                           {}
func (r *recorder) Failed() bool                      { return r.failed }
func (r *recorder) Logf(format string, args ...any)   { fmt.Fprintf(&r.text, format+"\n", args...) }
func (r *recorder) Errorf(format string, args ...any) { r.failed = true; r.Logf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }
func (r *recorder) FailNow()                          { r.failed = true; runtime.Goexit() }

// try runs a test under Retry, and returns how often it ran.
func try(t *testing.T, test func(t testing.TB, run int)) (*recorder, int) {
	r, runs := &recorder{TB: t}, 0
	goAndWait(func() {
		Retry(r, func(t testing.TB) {
			runs++
			test(t, runs)
		})
	})
	return r, runs
}

// TestNoFailureIsRunAgain has one test after the other fail in its first run alone.
func TestNoFailureIsRunAgain(t *testing.T) {
	for what, test := range map[string]func(t testing.TB){
		"a failure":                    func(t testing.TB) { t.Fatalf("wrong") },
		"a failure during a stall":     func(t testing.TB) { pretend(); t.Fatalf("wrong") },
		"a failure that goes on":       func(t testing.TB) { t.Errorf("wrong") },
		"a failure, and then too late": func(t testing.TB) { t.Errorf("wrong"); TooLate(t, "slow") },
		"two holders, then too late":   func(t testing.TB) { goAndWait(func() { exclusion.Never(t, "two holders") }); TooLate(t, "slow") },
		"too late, and then two holders": func(t testing.TB) {
			goAndWait(func() { TooLate(t, "slow") })
			exclusion.Never(t, "two holders")
		},
		"two holders in a cleanup, after too late": func(t testing.TB) {
			t.Cleanup(func() { exclusion.Never(t, "two holders") })
			TooLate(t, "slow")
		},
	} {
		r, runs := try(t, func(t testing.TB, run int) {
			if run == 1 {
				test(t)
			}
		})
		if !r.failed || runs != 1 {
			t.Errorf("%s: failed %v after %d runs, want a failure after one:\n%s", what, r.failed, runs, r.text.String())
		}
	}
	forget()
}

// pretend records a stall of the machine at this moment.
func pretend() { note(time.Now().Add(time.Minute), 2*time.Hour) }

// forget removes pretended stalls.
func forget() {
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	watcher.stalls = nil
}

// TestRunThatCameTooLateIsRunAgain has two runs be too late, each with cleanups of its
// own.
func TestRunThatCameTooLateIsRunAgain(t *testing.T) {
	var order []string
	r, runs := try(t, func(t testing.TB, run int) {
		t.Cleanup(func() { order = append(order, fmt.Sprint("first of ", run)) })
		t.Cleanup(func() {
			if t.Context().Err() == nil {
				t.Errorf("the context of the run has not ended")
			}
			order = append(order, fmt.Sprint("last of ", run))
		})
		switch run {
		case 1:
			TooLate(t, "it took %v", time.Hour)
		case 2:
			In(t, time.Second, time.Now().Add(-time.Minute))
		}
		In(t, time.Minute, time.Now())
	})
	if text := r.text.String(); r.failed || runs != 3 || !strings.Contains(text, "too late to tell; running it again: it took 1h") || !strings.Contains(text, "lasts 1s") {
		t.Errorf("failed %v after %d runs, want none after three:\n%s", r.failed, runs, text)
	}
	if got, want := strings.Join(order, ", "), "last of 1, first of 1, last of 2, first of 2, last of 3, first of 3"; got != want {
		t.Errorf("cleanups ran as %s, want %s", got, want)
	}
	if r, runs := try(t, func(t testing.TB, _ int) { TooLate(t, "slow") }); !r.failed || runs != lateTries {
		t.Errorf("always: failed %v after %d runs, want a failure after %d", r.failed, runs, lateTries)
	}
	if goAndWait(func() { TooLate(r, "slow") }); !r.failed {
		t.Error("it passed outside of Retry")
	}
}

func TestWatcherSeesALateTimer(t *testing.T) {
	forget()
	start := time.Now()
	note(start.Add(-time.Second), time.Hour) // before
	if late := Longest(start); late >= time.Hour {
		t.Errorf("a stall before the start counts: %v", late)
	}
	note(start.Add(time.Second), time.Minute)
	if late := Longest(start); late != time.Minute {
		t.Errorf("the longest stall is %v, want a minute", late)
	}
	forget()
}
