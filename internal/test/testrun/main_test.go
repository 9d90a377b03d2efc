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
{"Action":"output",` + pkg + `,"Test":"TestA","Output":"    x: run 1 of 3 failed while the machine stood still for 1s (limit 50ms); running it again\n"}
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
		s.read(strings.NewReader(strings.TrimSpace(c.events)))
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
