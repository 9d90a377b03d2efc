//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// logLine is a line of a log.
type logLine map[string]any

func (l logLine) text(key string) string { s, _ := l[key].(string); return s }

// readLog reads a log, and fails if anything in it is not a line of it.
func readLog(t testing.TB, text string) []logLine {
	t.Helper()
	var lines []logLine
	for line := range strings.Lines(text) {
		var l logLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("%v in %q of %s", err, line, text)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("not all of it is printable: %q", line)
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z", l.text("time"))
		if err != nil || time.Since(at) > time.Hour || l.text("level") == "" || l.text("msg") == "" || l.text("event") == "" {
			t.Errorf("time, level, msg or event is missing: %s", line)
		}
		lines = append(lines, l)
	}
	return lines
}

// events are the events of a log, in order.
func events(lines []logLine) []string {
	var all []string
	for _, l := range lines {
		all = append(all, l.text("event"))
	}
	return all
}

// find returns the first line with an event.
func find(t testing.TB, lines []logLine, event string) logLine {
	t.Helper()
	i := slices.IndexFunc(lines, func(l logLine) bool { return l.text("event") == event })
	if i < 0 {
		t.Fatalf("there is no %s in %v", event, lines)
	}
	return lines[i]
}

func TestLogOfARunHasEveryStep(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "locks.db")
	for _, name := range oddNames {
		code, stdout, stderr := command(t, "run", "--log-format", "json", "--nodes", "sqlite:"+state, name, "--", "sh", "-c", "echo $$; echo $REDLATCH_TOKEN; exit 3")
		lines := readLog(t, stderr)
		if want := []string{"acquired", "started", "ended", "released"}; code != 3 || !slices.Equal(events(lines), want) {
			t.Fatalf("%q: exit %d, %s, want %q", name, code, stderr, want)
		}
		pid, token, _ := strings.Cut(strings.TrimSpace(stdout), "\n")
		for _, l := range lines {
			if l.text("name") != name || l.text("token") != token {
				t.Errorf("%q: %v, want the token %s", name, l, token)
			}
		}
		if started, ended := lines[1], lines[2]; ended["exit"] != 3.0 || ended["level"] != "WARN" || ended["held_ms"] == nil || lines[0]["waited_ms"] == nil ||
			json.Number(pid) != json.Number(jsonText(t, started["pid"])) {
			t.Errorf("%q: %s; the pid was %s", name, stderr, pid)
		}
	}
}

func jsonText(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

func TestLogOfSeveralLocksHasAllTokens(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "run", "--log-format=json", "--nodes", "sqlite:"+filepath.Join(t.TempDir(), "locks.db"), "b", "a", "--", "sh", "-c", `echo "$REDLATCH_TOKEN"`)
	tokens := strings.Fields(stdout)
	if code != 0 || len(tokens) != 2 {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	want := `[{"name":"a","token":"` + tokens[0] + `"},{"name":"b","token":"` + tokens[1] + `"}]`
	for _, l := range readLog(t, stderr) {
		if got := jsonText(t, l["locks"]); got != want || l.text("name") != "b, a" {
			t.Errorf("locks %s, want %s", got, want)
		}
	}
}

// TestLogOfAWaitNamesTheHolderAndThePlace: the holder's log has that another
// waits.
func TestLogOfAWaitNamesTheHolderAndThePlace(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	dir := t.TempDir()
	started, end := filepath.Join(dir, "started"), filepath.Join(dir, "end")
	holder, held := run(t, servers, "--log-format", "json", "--label", "night\u202eshift", "job", "--", "sh", "-c", `echo >"$0"; until test -e "$1"; do sleep 0.01; done`, started, end)
	appears(t, started, held)
	waiter, waited := run(t, servers, "--log-format", "json", "-w", "4s", "job", "--", "true")
	if code := exitCode(t, waiter.Wait()); code != exitHeld {
		t.Errorf("exit %d, %s", code, waited)
	}
	lines := readLog(t, waited.String())
	if want := []string{"waiting", "skipped"}; !slices.Equal(events(lines), want) {
		t.Fatalf("%s, want %q", waited, want)
	}
	for _, l := range lines {
		if !strings.Contains(jsonText(t, l["holders"]), "night\u202eshift") || l.text("level") != "INFO" || l.text("name") != "job" {
			t.Errorf("%v", l)
		}
	}
	if lines[0]["place"] != 1.0 || lines[0]["waited_ms"] == nil || lines[1]["exit"] != 75.0 || lines[1].text("reason") != "held" {
		t.Errorf("%s", waited)
	}
	must(t, os.WriteFile(end, nil, 0o600))
	if code := exitCode(t, holder.Wait()); code != 0 {
		t.Errorf("exit %d", code)
	}
	if contended := find(t, readLog(t, held.String()), "contended"); contended.text("name") != "job" || contended.text("token") == "" {
		t.Errorf("%v", contended)
	}
}

func TestLogOfALostLockHasWhatWasDone(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	started := filepath.Join(t.TempDir(), "started")
	cmd, stderr := run(t, servers, "--log-format", "json", "--ttl", "6s", "job", "--", "sh", "-c", `trap "" TERM; echo >"$0"; while :; do sleep 0.01; done`, started)
	appears(t, started, stderr)
	servers[0].Freeze()
	servers[1].Kill()
	if code := exitCode(t, cmd.Wait()); code != exitLost {
		t.Errorf("exit %d, %s", code, stderr)
	}
	lines := readLog(t, stderr.String())
	token := find(t, lines, "acquired").text("token")
	steps := slices.DeleteFunc(events(lines), func(e string) bool { return e == "extending" })
	// Both servers may still have the lock, and have not confirmed its release.
	if want := strings.Fields("acquired started losing signal signal ended warning warning lost"); !slices.Equal(steps, want) {
		t.Errorf("%q: %s, want %q", steps, stderr, want)
	}
	if l := find(t, lines, "extending"); l.text("level") != "WARN" || l["left_ms"] == nil || !strings.Contains(l.text("err"), "no quorum (2 of 3 needed)") {
		t.Errorf("%v", l)
	}
	if l := find(t, lines, "losing"); l.text("cause") != causeNotExtended || l["left_ms"] == nil || l.text("token") != token {
		t.Errorf("%v", l)
	}
	last := lines[len(lines)-1]
	if last.text("cause") != causeNotExtended || last.text("level") != "ERROR" || last["exit"] != 79.0 || last.text("token") != token || last["held_ms"] == nil {
		t.Errorf("%v", last)
	}
	var signals []string
	for _, l := range lines {
		if l.text("event") == "signal" {
			signals = append(signals, l.text("signal"))
		}
	}
	if !slices.Equal(signals, []string{"SIGTERM", "SIGKILL"}) {
		t.Errorf("signals %q", signals)
	}
}

func TestLogOfALockThatWasBrokenSaysSoOnce(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	dir := t.TempDir()
	started, file := filepath.Join(dir, "started"), filepath.Join(dir, "job.prom")
	cmd, stderr := run(t, servers, "--log-format", "json", "--metrics", file, "--ttl", "10s", "job", "--", "sh", "-c", `echo >"$0"; exec sleep 1000`, started)
	appears(t, started, stderr)
	if code, _, out := command(t, "break", "--yes", "--nodes", strings.Join(servertest.Addresses(servers), ","), "job"); code != 0 {
		t.Fatal(out)
	}
	if code := exitCode(t, cmd.Wait()); code != exitLost {
		t.Errorf("exit %d, %s", code, stderr)
	}
	lines := readLog(t, stderr.String())
	want := regexp.MustCompile(`^acquired started losing signal (signal )?ended lost$`)
	if got := strings.Join(events(lines), " "); !want.MatchString(got) {
		t.Errorf("%s: %s", got, stderr)
	}
	if l := find(t, lines, "lost"); l.text("cause") != causeTaken {
		t.Errorf("%v", l)
	}
	if metric(checkMetrics(t, file), "lost", "name", "job", "cause", causeTaken) != "1" {
		t.Error("the metrics do not say that it was taken")
	}
}

func TestLogOfALeaderHasEveryTerm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := command(t, "lead", "--log-format", "json", "--nodes", "sqlite:"+filepath.Join(dir, "locks.db"), "--max-hold", "2s", "app", "--",
		"sh", "-c", `echo >>"$0"; test $(wc -l <"$0") -ge 2 || exec sleep 1000`, filepath.Join(dir, "terms"))
	lines := readLog(t, stderr)
	// The lock that is being lost is released as soon as CMD has ended.
	want := regexp.MustCompile(`^(acquired started losing signal (signal )?ended (released )?lost )+acquired started ended released$`)
	if got := strings.Join(events(lines), " "); code != 0 || !want.MatchString(got) {
		t.Errorf("exit %d, %s: %s", code, got, stderr)
	}
	if l := find(t, lines, "lost"); l.text("cause") != causeMaxHold || l.text("token") != find(t, lines, "acquired").text("token") {
		t.Errorf("%v", l)
	}
}

func TestLogHasForwardedSignals(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	cmd := exec.Command("redlatch", "run", "--log-format", "json", "--nodes", "sqlite:"+started+".db", "job", "--", "sh", "-c", `exec 2>/dev/null; trap "exit 9" USR1; echo >"$0"; while :; do sleep 0.01; done`, started)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	defer cmd.Process.Kill()
	appears(t, started)
	cmd.Process.Signal(syscall.SIGUSR1)
	if code := exitCode(t, cmd.Wait()); code != 9 {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
	if l := find(t, readLog(t, stderr.String()), "signal"); l.text("signal") != "SIGUSR1" || l.text("why") != "redlatch got it" {
		t.Errorf("%v", l)
	}
}

// TestStderrIsTheLogAlone has every message that is not about a run, too.
func TestStderrIsTheLogAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	must(t, os.WriteFile(config, []byte("log-format = json\n"), 0o600))
	inFile, inEnvironment := "REDLATCH_CONFIG="+config, "REDLATCH_LOG_FORMAT=json"
	for _, c := range []struct {
		env  string
		args []string
		want string // the events
	}{
		{"", []string{"run", "--log-format", "json", "--bogus", "job", "--", "true"}, "failed"},
		{"", []string{"run", "--bogus", "--log-format", "json", "job", "--", "true"}, "failed"},
		{"", []string{"run", "--bogus", "--log-format=json", "job", "--", "true"}, "failed"},
		{inEnvironment, []string{"run", "--bogus", "job", "--", "true"}, "failed"},
		{inFile, []string{"run", "--bogus", "job", "--", "true"}, "failed"},
		{inEnvironment, []string{"run", "job"}, "failed"},
		{inEnvironment, []string{"run", "-q", "--nodes", "local", "--ttl", "1h", "job", "--", "true"}, "failed"},
		{inEnvironment, []string{"run", "job", "--", "no-such-program"}, "failed"},
		{inEnvironment, []string{"run", "job", "--", "true"}, "warning acquired started ended released"}, // locks are local
		{inFile, []string{"run", "-q", "--nodes", "local", "job", "--", "true"}, ""},
		{inEnvironment, []string{"run", "-q", "--nodes", "local", "job", "--", "false"}, "ended"},
		{"", []string{"run", "--log-format", "json", "--json", "job", "--", "true"}, "failed"},
		{"REDLATCH_TTTL=1", []string{"run", "--log-format", "json", "job", "--", "true"}, "failed"},
		{inEnvironment, []string{"run", "-n", "--nodes", "redis://:secret@127.0.0.1:1", "job", "--", "true"}, "warning failed"},
		{inEnvironment, []string{"lead", "--on-lost", "ignore", "job", "--", "true"}, "failed"},
		{inEnvironment, []string{"lock", "-q", "-n", "--nodes", "local", "--label", strings.Repeat("x", 100), "job"}, "failed"},
		{inEnvironment, []string{"lock", "--nodes", "local", "job2"}, "acquired"},
		{inEnvironment, []string{"lock", "-n", "--nodes", "local", "job2"}, "skipped"},
		{inEnvironment, []string{"lock", "-q", "-n", "--nodes", "local", "job2"}, ""},
		{inEnvironment, []string{"unlock", "--nodes", "local", "no-handle"}, "failed"},
	} {
		var stderr bytes.Buffer
		cmd := exec.Command("redlatch", c.args...)
		cmd.Stderr, cmd.Env = &stderr, append(os.Environ(), "REDLATCH_STATE_DIR="+dir)
		if c.env != "" {
			cmd.Env = append(cmd.Env, c.env)
		}
		cmd.Run()
		if got := strings.Join(events(readLog(t, stderr.String())), " "); got != c.want {
			t.Errorf("%s %q: %q, want %q; %s", c.env, c.args, got, c.want, stderr.String())
		}
		if strings.Contains(stderr.String(), "secret") {
			t.Errorf("%q: a password is shown: %s", c.args, stderr.String())
		}
	}
	// What is nearer to the user counts: --json on the command line.
	cmd := exec.Command("redlatch", "run", "--nodes", "local", "--json", "job", "--", "true")
	cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+dir, inEnvironment)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), `{"event":"exited","name":"job","exit":0,`) || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("%v, %s", err, out)
	}
	// Verbs without a log are not concerned.
	cmd = exec.Command("redlatch", "ls", "--nodes", "local")
	cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+dir, inEnvironment)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "NAME") {
		t.Errorf("ls: %v, %s", err, out)
	}
}

// TestNodesInQuarantineAreInTheLog, each by its name.
func TestNodesInQuarantineAreInTheLog(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	servers[1].Do("FLUSHALL")
	var lines []logLine
	if !poll.Holds(poll.Patience, func() bool {
		cmd, stderr := run(t, servers, "--log-format", "json", "job", "--", "sleep", "0.3")
		cmd.Wait()
		lines = readLog(t, stderr.String())
		return slices.Contains(events(lines), "quarantined")
	}) {
		t.Fatal("no run says that a node is quarantined")
	}
	if l := find(t, lines, "quarantined"); l.text("node") != servers[1].URL() || l.text("level") != "WARN" || !strings.Contains(l.text("msg"), "quarantine") {
		t.Errorf("%v", l)
	}
}

// TestNamesAreShownWithoutTricks: a mark of direction in a name, or in what a
// holder is called, would show it as another one. Text has it escaped, and so
// has JSON.
func TestNamesAreShownWithoutTricks(t *testing.T) {
	t.Parallel()
	nodes := newQuorum(t, 1)[0].URL()
	name := "a\u202egpj.exe\u200b\u00a0\U000E0041"
	const text, inJSON = `a\u202egpj.exe\u200b\u00a0\U000e0041`, `a\u202egpj.exe\u200b\u00a0\udb40\udc41`
	if code, _, stderr := command(t, "lock", "--ttl", "30s", "--label", name, "--nodes", nodes, name); code != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{
		{"run", "-n", "--nodes", nodes, name, "--", "true"}, {"run", "-w", "3s", "--nodes", nodes, name, "--", "true"},
		{"ls", "--nodes", nodes}, {"show", "--nodes", nodes, name},
		{"run", "-n", "--json", "--nodes", nodes, name, "--", "true"}, {"run", "-n", "--log-format", "json", "--nodes", nodes, name, "--", "true"},
		{"ls", "--json", "--nodes", nodes}, {"show", "--json", "--nodes", nodes, name}, {"break", "--yes", "--nodes", nodes, name},
	} {
		_, stdout, stderr := command(t, args...)
		want := text
		if slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, "json") }) {
			want = inJSON
		}
		out := stdout + stderr
		if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || args[0] != "break" && !strings.Contains(out, want) {
			t.Errorf("%q: %q, want %s", args[:len(args)-1], out, want)
		}
	}
}
