// Testrun runs go test and prints little about what passes: a line for each
// package, each failure when its test ends and again at the end, and the counts.
//
//	go run ./internal/test/testrun [flags of go test] PACKAGES [-- [flags] PACKAGES]
//
// The packages after -- are run meanwhile, with flags of their own and at a lower
// priority: those whose tests compute, and have no clock to be late for.
//
// A test that failed is run once more, alone, when all others are over: tests
// on real servers may fail on a machine that is too busy. It is named in the
// report, whatever the second run shows. Some failures count at once: a data
// race, a panic, a promise of the lock that was broken, a failure outside of
// tests, and more than three tests that failed.
//
// It exits with 1 if anything failed or nothing was run. It names each test
// that was run again, and each that was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	begin := time.Now()
	s := newSummary(os.Stdout)
	s.short = slices.Contains(os.Args, "-short")
	if err := s.run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	s.repeat(func(args []string, red redTest, second *summary) error {
		return second.run(alone(args, red))
	})
	if !s.report(time.Since(begin)) {
		os.Exit(1)
	}
}

// settings are those of the programs, unless they are set already.
var settings = []string{
	// By default the race detector has every program sleep for a second before
	// it exits.
	"GORACE=atexit_sleep_ms=10",
	// Memory is collected less often: there is enough of it.
	"GOGC=300", "GOMEMLIMIT=3GiB",
}

// run runs go test for the arguments, and once more for those after --, at the same
// time.
func (s *summary) run(args []string) error {
	var beside chan error
	if i := slices.Index(args, "--"); i >= 0 {
		later := args[i+1:]
		args, beside = args[:i], make(chan error, 1)
		go func() { beside <- s.goTest(later, "nice", "-n", "5") }()
	}
	err := s.goTest(args)
	if beside != nil {
		err = errors.Join(err, <-beside)
	}
	return err
}

// goTest runs go test, by way of another command if there is one, and takes its
// output. A failure of go test is no error: it is recorded.
func (s *summary) goTest(args []string, by ...string) error {
	line := slices.Concat(by, []string{"go", "test", "-json"}, args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = os.Stderr
	cmd.Env = os.Environ()
	for _, set := range settings {
		if name, _, _ := strings.Cut(set, "="); os.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, set)
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.read(out, args)
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() == 1 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.red = true
		return nil
	}
	return err
}

// alone returns the arguments that run one test: the flags of args without
// their packages.
func alone(args []string, red redTest) []string {
	var flags []string
	for i, arg := range args {
		value := i > 0 && slices.Contains([]string{"-p", "-parallel", "-timeout", "-run"}, args[i-1])
		if value || strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		}
	}
	return append(flags, "-count=1", "-run", "^"+red.test+"$", red.pkg)
}

// event is a line that go test -json prints.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
	FailedBuild                               string
}

// summary collects the results.
type summary struct {
	mu                      sync.Mutex
	out                     io.Writer
	red                     bool // go test reported it
	short                   bool // skipped tests were asked for
	passed, failed, skipped int
	packages                map[string]int      // tests that passed, by package
	reds                    map[string]int      // tests that failed, by package
	again                   []redTest           // what may be run once more
	args                    map[string][]string // of go test, by package
	final                   bool                // something failed that counts at once
	output                  map[string][]string // by package and test, while it runs
	failures, skips         []string
	stalls, repeats         []string // tests that ran more than once
}

// redTest is a test that failed.
type redTest struct{ pkg, test string }

// mostAgain is how many tests are run once more.
const mostAgain = 3

// final are parts of the messages of failures that count at once: what no busy
// machine explains.
var final = []string{"DATA RACE", "race detected", "panic", "promise", "two ", "both ", "second holder", "overlap", "token"}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, packages: map[string]int{}, reds: map[string]int{}, args: map[string][]string{}, output: map[string][]string{}}
}

// read takes the output of go test with these arguments.
func (s *summary) read(r io.Reader, args []string) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		known := json.Unmarshal(in.Bytes(), &e) == nil
		s.mu.Lock()
		if known {
			s.args[e.Package] = args
			s.take(e)
		} else {
			fmt.Fprintln(s.out, in.Text())
		}
		s.mu.Unlock()
	}
}

// take processes one event.
func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			key = "build " + e.ImportPath
		}
		s.output[key] = append(s.output[key], e.Output)
		if strings.Contains(e.Output, againMark) {
			s.stalls = append(s.stalls, e.Test+": "+strings.TrimSpace(e.Output))
		}
	case "build-fail":
		s.final = true
		s.fail("build of " + e.ImportPath + " failed\n" + tail(s.output["build "+e.ImportPath]))
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endOfPackage(e)
		} else {
			s.endOfTest(e, s.output[key])
		}
		delete(s.output, key)
	}
}

// fail records a failure and prints it at once: a log that is cut off, or a run
// that is stopped, still has it.
func (s *summary) fail(text string) {
	s.failures = append(s.failures, text)
	for _, part := range final {
		s.final = s.final || strings.Contains(text, part)
	}
	fmt.Fprintf(s.out, "FAIL  %s\n", text)
}

// againMark is in the line that package stall logs when it runs a test again.
const againMark = "; running it again"

func (s *summary) endOfTest(e event, output []string) {
	switch e.Action {
	case "pass":
		s.passed++
		s.packages[e.Package]++
	case "skip":
		s.skipped++
		if !s.short {
			s.skips = append(s.skips, short(e.Package)+" "+e.Test)
		}
	case "fail":
		s.failed++
		s.reds[e.Package]++
		test, _, _ := strings.Cut(e.Test, "/")
		if red := (redTest{e.Package, test}); !slices.Contains(s.again, red) {
			s.again = append(s.again, red)
		}
		s.fail(short(e.Package) + " " + e.Test + "\n" + tail(output))
	}
}

func (s *summary) endOfPackage(e event) {
	switch {
	case e.Action == "skip": // it has no tests
		return
	case e.Action == "fail" && e.FailedBuild == "":
		// Output outside of tests: a panic, a time limit, a data race after the
		// last test, a leak. If a test failed, its output is enough.
		text := tail(s.output[e.Package+" "])
		if s.reds[e.Package] == 0 || strings.Contains(text, "panic") || strings.Contains(text, "exit status 2") {
			s.final = true
			s.fail(short(e.Package) + " failed outside of its tests\n" + text)
		}
		// Tests that were cut off have no event for their end.
		for _, key := range slices.Sorted(maps.Keys(s.output)) {
			if test, ok := strings.CutPrefix(key, e.Package+" "); ok && test != "" {
				s.fail(short(e.Package) + " " + test + " did not end\n" + tail(s.output[key]))
				delete(s.output, key)
			}
		}
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL"}[e.Action]
	fmt.Fprintf(s.out, "%s  %-28s %4d tests %8.1fs\n", word, short(e.Package), s.packages[e.Package], e.Elapsed)
}

// repeat runs the tests that failed once more, each alone. If all of them pass,
// the whole run has passed.
func (s *summary) repeat(run func(args []string, red redTest, second *summary) error) {
	if s.final || len(s.again) == 0 || len(s.again) > mostAgain {
		return
	}
	for _, red := range s.again {
		fmt.Fprintf(s.out, "again %s %s, alone\n", short(red.pkg), red.test)
		second := newSummary(s.out)
		if err := run(s.args[red.pkg], red, second); err != nil || !second.well() || second.skipped > 0 {
			return
		}
	}
	s.repeats, s.failures = s.failures, nil
	s.passed, s.failed, s.red = s.passed+s.failed, 0, false
}

// short is a package's path from the root of the repository.
func short(path string) string {
	if rest, ok := strings.CutPrefix(path, "github.com/redlatch/redlatch"); ok {
		return "." + rest
	}
	return path
}

// most is how many lines of a failure are shown.
const most = 40

// tail returns the last lines of an output, without empty lines and without the
// === lines that frame a test.
func tail(output []string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "=== ") {
			continue
		}
		lines = append(lines, "    "+strings.TrimRight(line, "\n"))
	}
	if n := len(lines); n > most {
		lines = append([]string{fmt.Sprintf("    … %d lines before", n-most)}, lines[n-most:]...)
	}
	return strings.Join(lines, "\n")
}

// report prints the summary, and returns whether everything passed.
func (s *summary) report(took time.Duration) bool {
	for _, list := range []struct {
		title string
		lines []string
	}{
		{"run again, since the machine was stalled:", s.stalls},
		{"failed, and passed when run again alone:", s.repeats},
		{"skipped:", s.skips},
		{"failed:", s.failures},
	} {
		if len(list.lines) > 0 {
			fmt.Fprintf(s.out, "\n%s\n", list.title)
		}
		for _, line := range list.lines {
			fmt.Fprintf(s.out, "  %s\n", line)
		}
	}
	fmt.Fprintf(s.out, "\nafter %v:\n%d passed, %d failed, %d skipped, %d passed only when run again\n", took.Round(time.Second), s.passed, s.failed, s.skipped, len(s.repeats))
	return s.well()
}

// well reports whether tests ran and all of them passed.
func (s *summary) well() bool {
	return !s.red && s.failed == 0 && len(s.failures) == 0 && s.passed > 0
}
