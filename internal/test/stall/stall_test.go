package stall

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// recorder is a TB that records what a test reports.
type recorder struct {
	testing.TB
	failed bool
	text   strings.Builder
}

func (r *recorder) Helper()                           {}
func (r *recorder) Logf(format string, args ...any)   { fmt.Fprintf(&r.text, format+"\n", args...) }
func (r *recorder) Errorf(format string, args ...any) { r.failed = true; r.Logf(format, args...) }

// try runs a test under Retry, with a limit that only pretended stalls exceed,
// and returns how often it ran.
func try(t *testing.T, test func(t testing.TB, run int)) (*recorder, int) {
	r, runs := &recorder{TB: t}, 0
	Retry(r, time.Hour, func(t testing.TB) {
		runs++
		test(t, runs)
	})
	return r, runs
}

// pretend records a stall of the machine at this moment.
func pretend() { note(time.Now().Add(time.Minute), 2*time.Hour) }

// forget removes pretended stalls.
func forget() {
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	watcher.stalls = nil
}

func TestFailureWithoutAStallCounts(t *testing.T) {
	forget()
	r, runs := try(t, func(t testing.TB, _ int) { t.Error("wrong") })
	if !r.failed || runs != 1 {
		t.Errorf("failed %v after %d runs, want a failure after one", r.failed, runs)
	}
	if !strings.Contains(r.text.String(), "stall_test.go:") || !strings.Contains(r.text.String(), "wrong") {
		t.Errorf("it does not say what failed and where:\n%s", r.text.String())
	}
}

// helping fails a test on behalf of its caller.
func helping(t testing.TB) {
	t.Helper()
	t.Error("wrong")
}

func TestFailureIsAttributedToWhoCalledTheHelper(t *testing.T) {
	forget()
	var line int
	r, _ := try(t, func(t testing.TB, _ int) {
		_, _, line, _ = runtime.Caller(0)
		helping(t)
	})
	if want := fmt.Sprintf("stall_test.go:%d: wrong", line+1); !strings.Contains(r.text.String(), want) {
		t.Errorf("it does not say %s:\n%s", want, r.text.String())
	}
}

func TestFailureDuringAStallIsTriedAgain(t *testing.T) {
	defer forget()
	r, runs := try(t, func(t testing.TB, run int) {
		if run == 1 {
			pretend()
			t.Fatal("too late")
		}
	})
	if r.failed || runs != 2 {
		t.Errorf("failed %v after %d runs, want none after two", r.failed, runs)
	}
	if !strings.Contains(r.text.String(), "was stalled") {
		t.Errorf("it does not say that it ran again:\n%s", r.text.String())
	}
}

func TestThirdFailureCountsThoughTheMachineStalls(t *testing.T) {
	defer forget()
	r, runs := try(t, func(t testing.TB, _ int) {
		pretend()
		t.Fatal("too late")
	})
	if !r.failed || runs != tries {
		t.Errorf("failed %v after %d runs, want a failure after %d", r.failed, runs, tries)
	}
}

func TestRunThatCameTooLateIsNotOneOfTheThree(t *testing.T) {
	forget()
	r, runs := try(t, func(t testing.TB, run int) {
		if run <= 2*tries {
			TooLate(t, "it took %v", time.Hour)
		}
	})
	if r.failed || runs != 2*tries+1 {
		t.Errorf("failed %v after %d runs, want none after %d", r.failed, runs, 2*tries+1)
	}
	if text := r.text.String(); !strings.Contains(text, "; running it again") || !strings.Contains(text, "it took 1h") {
		t.Errorf("it does not say that it ran again, and why:\n%s", text)
	}
}

func TestFailureCountsThoughRunsBeforeItCameTooLate(t *testing.T) {
	forget()
	r, runs := try(t, func(t testing.TB, run int) {
		if run == 1 {
			TooLate(t, "slow")
		}
		t.Error("wrong")
	})
	if !r.failed || runs != 2 {
		t.Errorf("failed %v after %d runs, want a failure after two", r.failed, runs)
	}
}

func TestTestThatIsAlwaysTooLateFails(t *testing.T) {
	forget()
	if r, runs := try(t, func(t testing.TB, _ int) { TooLate(t, "slow") }); !r.failed || runs != lateTries {
		t.Errorf("failed %v after %d runs, want a failure after %d", r.failed, runs, lateTries)
	}
}

func TestSkippingIsAFailure(t *testing.T) {
	forget()
	for _, skip := range []func(testing.TB){
		func(t testing.TB) { t.Skip("busy") }, func(t testing.TB) { t.Skipf("busy") }, func(t testing.TB) { t.SkipNow() },
	} {
		if r, _ := try(t, func(t testing.TB, _ int) { skip(t) }); !r.failed {
			t.Error("a run that skipped was taken for one that passed")
		}
	}
}

func TestEachRunHasItsOwnCleanups(t *testing.T) {
	defer forget()
	var order []string
	try(t, func(t testing.TB, run int) {
		t.Cleanup(func() { order = append(order, fmt.Sprint("first of ", run)) })
		t.Cleanup(func() {
			if t.Context().Err() == nil {
				t.Error("the context of the run has not ended")
			}
			order = append(order, fmt.Sprint("last of ", run))
		})
		if run == 1 {
			pretend()
			t.FailNow()
		}
		forget()
	})
	if got, want := strings.Join(order, ", "), "last of 1, first of 1, last of 2, first of 2"; got != want {
		t.Errorf("cleanups ran as %s, want %s", got, want)
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
