package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

const pkg = `"Package":"github.com/redlatch/redlatch/store/redis"`

func TestSummaryNamesWhatFailedWasSkippedAndRanAgain(t *testing.T) {
	for _, c := range []struct {
		what, events string
		well         bool
		want         []string
	}{
		{"all passed", `
{"Action":"run",` + pkg + `,"Test":"TestA"}
{"Action":"output",` + pkg + `,"Test":"TestA","Output":"noise of a library\n"}
{"Action":"pass",` + pkg + `,"Test":"TestA","Elapsed":1}
{"Action":"pass",` + pkg + `,"Elapsed":2.5}`, true,
			[]string{"ok    ./store/redis", "1 tests", "2.5s", "1 passed, 0 failed, 0 skipped"}},
		{"one failed", `
{"Action":"output",` + pkg + `,"Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output",` + pkg + `,"Test":"TestA","Output":"    a_test.go:3: too late\n"}
{"Action":"fail",` + pkg + `,"Test":"TestA","Elapsed":1}
{"Action":"fail",` + pkg + `,"Elapsed":2.5}`, false,
			[]string{"FAIL  ./store/redis TestA\n        a_test.go:3: too late\nFAIL  ./store/redis  ", "failed:\n  ./store/redis TestA\n        a_test.go:3: too late", "0 passed, 1 failed"}},
		{"one skipped", `
{"Action":"pass",` + pkg + `,"Test":"TestA"}
{"Action":"skip",` + pkg + `,"Test":"TestB"}
{"Action":"pass",` + pkg + `}`, true, []string{"skipped:\n  ./store/redis TestB", "1 passed, 0 failed, 1 skipped"}},
		{"run again", `
{"Action":"output",` + pkg + `,"Test":"TestA","Output":"    x: run 1 of 3 failed while the machine was stalled for 1s (limit 50ms); running it again\n"}
{"Action":"pass",` + pkg + `,"Test":"TestA"}
{"Action":"pass",` + pkg + `}`, true, []string{"run again", "TestA: x: run 1 of 3"}},
		{"a panic outside of a test", `
{"Action":"pass",` + pkg + `,"Test":"TestA"}
{"Action":"output",` + pkg + `,"Output":"panic: test timed out after 8m0s\n"}
{"Action":"fail",` + pkg + `}`, false, []string{"panic: test timed out"}},
		{"a data race after the last test", `
{"Action":"pass",` + pkg + `,"Test":"TestA"}
{"Action":"output",` + pkg + `,"Output":"testing: race detected outside of test execution\n"}
{"Action":"fail",` + pkg + `}`, false, []string{"./store/redis failed outside of its tests", "race detected"}},
		{"a test that was cut off", `
{"Action":"output",` + pkg + `,"Test":"TestA","Output":"    a_test.go:3: so far so good\n"}
{"Action":"output",` + pkg + `,"Output":"signal: killed\n"}
{"Action":"fail",` + pkg + `}`, false, []string{"./store/redis TestA did not end", "so far so good", "signal: killed"}},
		{"a build that failed", `
{"Action":"build-output","ImportPath":"x","Output":"a.go:1:1: undefined: y\n"}
{"Action":"build-fail","ImportPath":"x"}
{"Action":"fail",` + pkg + `,"FailedBuild":"x"}`, false, []string{"build of x failed", "undefined: y"}},
		{"nothing ran", `{"Action":"skip",` + pkg + `}`, false, []string{"0 passed"}},
	} {
		var out bytes.Buffer
		s := newSummary(&out)
		s.read(strings.NewReader(strings.TrimSpace(c.events)), []string{"-race"})
		if well := s.report(time.Second); well != c.well {
			t.Errorf("%s: well is %v, want %v", c.what, well, c.well)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing in\n%s", c.what, want, out.String())
			}
		}
		if strings.Contains(out.String(), "noise") {
			t.Errorf("%s: the noise of what passed is shown:\n%s", c.what, out.String())
		}
	}
}

func TestLongOutputOfAFailureIsCut(t *testing.T) {
	text := tail(strings.SplitAfter(strings.Repeat("line\n", 100), "\n"))
	if n := strings.Count(text, "line"); n != most+1 { // and the one that counts them
		t.Errorf("%d lines are shown, want %d", n, most)
	}
}

// redRun is the output of a run in which one test of two failed.
func redRun(text string) string {
	return `
{"Action":"pass",` + pkg + `,"Test":"TestA"}
{"Action":"output",` + pkg + `,"Test":"TestB/x","Output":"    b_test.go:3: ` + text + `\n"}
{"Action":"fail",` + pkg + `,"Test":"TestB/x"}
{"Action":"fail",` + pkg + `,"Test":"TestB"}
{"Action":"fail",` + pkg + `}`
}

const (
	greenAlone   = `{"Action":"pass",` + pkg + `,"Test":"TestB"}`
	redAlone     = `{"Action":"fail",` + pkg + `,"Test":"TestB"}`
	skippedAlone = `{"Action":"pass",` + pkg + `,"Test":"TestB"}` + "\n" + `{"Action":"skip",` + pkg + `,"Test":"TestB/x"}`
)

func TestTestThatFailedIsRunOnceMoreAlone(t *testing.T) {
	for _, c := range []struct {
		what, events, second string
		well                 bool
		runs                 int
	}{
		{"it passes", redRun("took 2s"), greenAlone, true, 1},
		{"it fails again", redRun("took 2s"), redAlone, false, 1},
		{"it is skipped", redRun("took 2s"), skippedAlone, false, 1},
		{"nothing is run", redRun("took 2s"), "", false, 1},
		{"a promise was broken", redRun("two clients hold the lock"), greenAlone, false, 0},
		{"a data race", redRun("WARNING: DATA RACE"), greenAlone, false, 0},
		{"a failure outside", redRun("took 2s") + `
{"Action":"output","Package":"p","Output":"exit status 2\n"}
{"Action":"fail","Package":"p"}`, greenAlone, false, 0},
		{"one test, four parts", redRun("1") + redRun("2") + redRun("3") + redRun("4"), greenAlone, true, 1},
		{"four tests", redRun("1") + strings.ReplaceAll(redRun("2"), "TestB", "TestC") +
			strings.ReplaceAll(redRun("3"), "TestB", "TestD") + strings.ReplaceAll(redRun("4"), "TestB", "TestE"), greenAlone, false, 0},
	} {
		var out bytes.Buffer
		s := newSummary(&out)
		s.read(strings.NewReader(strings.TrimSpace(c.events)), []string{"-race"})
		s.red = true
		runs := 0
		s.repeat(func(args []string, red redTest, second *summary) error {
			if runs++; red.test != "TestB" || len(args) != 1 {
				t.Errorf("%s: %s is run again, with %q", c.what, red.test, args)
			}
			second.read(strings.NewReader(c.second), nil)
			return nil
		})
		if well := s.report(time.Second); well != c.well || runs != c.runs {
			t.Errorf("%s: well is %v after %d more runs, want %v after %d", c.what, well, runs, c.well, c.runs)
		}
		if !strings.Contains(out.String(), "TestB/x") || c.well && !strings.Contains(out.String(), "passed when run again alone") {
			t.Errorf("%s: the test is not named:\n%s", c.what, out.String())
		}
	}
}

func TestFlagsOfARunAloneAreThoseOfTheWholeRun(t *testing.T) {
	got := alone([]string{"-race", "-p", "3", "-timeout", "30m", "./store/redis", "work"}, redTest{"x/y", "TestB"})
	if want := "-race -p 3 -timeout 30m -count=1 -run ^TestB$ x/y"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}

// TestPackagesAfterTheDashesAreRunWithTheirOwnFlags runs one package in each way.
func TestPackagesAfterTheDashesAreRunWithTheirOwnFlags(t *testing.T) {
	var out bytes.Buffer
	s := newSummary(&out)
	const one, other = "github.com/redlatch/redlatch/internal/early", "github.com/redlatch/redlatch/internal/screen"
	if err := s.run([]string{"-run", "^Test", one, "--", "-run", "^TestNone$", other}); err != nil {
		t.Fatal(err)
	}
	if s.packages[one] == 0 || s.packages[other] != 0 || len(s.args[one]) != 3 || len(s.args[other]) != 3 || s.red {
		t.Errorf("tests by package: %v, arguments: %v\n%s", s.packages, s.args, out.String())
	}
}
