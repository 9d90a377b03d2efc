//go:build unix

package redsync_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/adapters/redsync"
	"github.com/redlatch/redlatch/internal/test/race"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// leftOut is the test of redsync that does not apply: it compares the digests of
// redsync's own Lua scripts, which are not used here.
const leftOut = "TestScripts_Hash"

// rewrites are what redsync's tests need to run in this package. Each text must
// be there, or redsync's tests have changed.
var rewrites = map[string][]struct{ old, new, why string }{
	"redsync_test.go": {
		{"t.Run(k, func(t *testing.T) {", inParallel, "the clients, which have servers of their own, at the same time"},
	},
	"mutex_test.go": {
		{"t.Run(k, func(t *testing.T) {", inParallel, "the same"},
		{"time.Sleep(100 * time.Millisecond) // 1ms", "t.Log(err)\n\t\t\t\t\t\ttime.Sleep(100 * time.Millisecond)\n\t\t\t\t\t\terr = mutex.TryLock()",
			"another try: it waits for the end of an error that nothing changes, and never ends if a busy machine fails the first"},
	},
}

const inParallel = "t.Run(k, func(t *testing.T) {\n\t\t\tt.Parallel()"

// onlyTest is redsync's file that starts servers and opens clients, which clients_test.go
// does here, and what is left of it.
var (
	onlyTest = regexp.MustCompile(`(?s)\A.*?(func TestRedsync\(.*?\n}\n).*\z`)
	theTest  = "package redsync\n\nimport (\n\"context\"\n\"testing\"\n)\n\n$1"
)

// newTestMutexes is redsync's helper that sets the private fields of a Mutex, and
// what has the same effect here.
var (
	newTestMutexes = regexp.MustCompile(`(?ms)^func newTestMutexes\(pools \[\]redis\.Pool, name string, n int\) \[\]\*Mutex \{\n.*?^\}\n`)
	byOptions      = `func newTestMutexes(pools []redis.Pool, name string, n int) []*Mutex {
	mutexes := make([]*Mutex, n)
	rs := New(pools...)
	for i := range n {
		mutexes[i] = rs.NewMutex(name+"-"+strconv.Itoa(i), WithRetryDelay(500*time.Millisecond))
	}
	return mutexes
}
`
)

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{$`)

var passedTest = regexp.MustCompile(`(?m)^--- PASS: (\w+)`)

// moduleDir returns the folder of a module's source.
func moduleDir(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// theirTests returns the texts of redsync's test files by their names, and the
// names of all tests in them.
func theirTests(t testing.TB) (files map[string]string, tests []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(moduleDir(t, "github.com/go-redsync/redsync/v4"), "*_test.go"))
	if err != nil || len(paths) == 0 {
		t.Fatal("redsync's module has no tests", err)
	}
	files = map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		files[filepath.Base(path)] = string(text)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, m[1])
		}
	}
	slices.Sort(tests)
	return files, tests
}

// adapt returns the text of a test file as it runs here; "" if none of its tests
// applies.
func adapt(t testing.TB, name, text string) string {
	t.Helper()
	tests := testFunc.FindAllStringSubmatch(text, -1)
	if !slices.ContainsFunc(tests, func(m []string) bool { return m[1] != leftOut }) {
		return ""
	}
	for _, r := range rewrites[name] {
		if !strings.Contains(text, r.old) {
			t.Fatalf("%s has no longer %q, which is replaced for %s", name, r.old, r.why)
		}
		text = strings.ReplaceAll(text, r.old, r.new)
	}
	if name == "redsync_test.go" {
		if len(onlyTest.FindAllString(text, -1)) != 1 {
			t.Fatalf("%s has no longer TestRedsync", name)
		}
		text = onlyTest.ReplaceAllString(text, theTest)
	}
	if name == "mutex_test.go" {
		if len(newTestMutexes.FindAllString(text, -1)) != 1 {
			t.Fatalf("%s has no longer the helper newTestMutexes", name)
		}
		text = newTestMutexes.ReplaceAllLiteralString(text, byOptions)
	}
	return text
}

// overlay writes redsync's tests and says in a file for go test that they are in
// this folder, and that our own tests are not, but for the clients.
func overlay(t testing.TB) string {
	t.Helper()
	here, err := os.Getwd()
	must(t, err)
	replace := map[string]string{}
	ours, err := filepath.Glob(filepath.Join(here, "*_test.go"))
	must(t, err)
	for _, path := range ours {
		if filepath.Base(path) != "clients_test.go" {
			replace[path] = ""
		}
	}
	dir := t.TempDir()
	files, _ := theirTests(t)
	for name, text := range files {
		if text = adapt(t, name, text); text == "" {
			continue
		}
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o644))
		replace[filepath.Join(here, "theirs_"+name)] = path
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	list := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(list, text, 0o644))
	return list
}

// TestRedsyncsOwnTestsPass runs redsync's tests, from its module, in this
// package: with each of Clients on eight servers.
func TestRedsyncsOwnTestsPass(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	stall.Retry(t, runTheirTests)
}

func runTheirTests(t testing.TB) {
	args := []string{"test", "-count=1", "-v", "-parallel=2", "-timeout=10m", "-vet=off", "-ldflags=-w", "-overlay=" + overlay(t)}
	if race.Enabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	for client := range redsync.Clients {
		cmd.Env = append(cmd.Env, client+"="+strings.Join(servertest.Hosts(servertest.Redis(t, 8)), " "))
	}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	passed := map[string]bool{}
	for _, m := range passedTest.FindAllSubmatch(out, -1) {
		passed[string(m[1])] = true
	}
	_, tests := theirTests(t)
	var failed []string
	for _, name := range tests {
		if name != leftOut && !passed[name] {
			failed = append(failed, name)
		}
	}
	// One expects that Extend has reached all servers when it returns, the other
	// that every server answers its only try: that holds unless a server is slow.
	// Neither has a rival.
	slow := []string{"TestMutexExtend", "TestMutexQuorum"}
	if len(failed) > 0 && !slices.ContainsFunc(failed, func(name string) bool { return !slices.Contains(slow, name) }) {
		stall.Busy(t, 30*time.Millisecond, began)
	}
	if err != nil {
		t.Errorf("go test: %v", err)
	}
	for _, name := range failed {
		t.Errorf("%s has not passed", name)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	t.Logf("%d of redsync's %d tests passed", len(passed), len(tests))
}
