//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redlatch/redlatch/internal/test/poll"
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
		if err != nil || time.Since(at) > time.Hour || l.text("level") == "" || l.text("event") == "" {
			t.Errorf("time, level or event is missing: %s", line)
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
		code, stdout, stderr := command(t, "run", "--json", "--nodes", "sqlite:"+state, name, "--", "sh", "-c", "echo $$; echo $REDLATCH_TOKEN; exit 3")
		lines := readLog(t, stderr)
		if want := []string{"acquired", "started", "ended", "released", "exited"}; code != 3 || !slices.Equal(events(lines), want) {
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

// TestLogOfAWaitNamesTheHolderAndThePlace: the holder's log has that another
// waits.
func TestLogOfAWaitNamesTheHolderAndThePlace(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	dir := t.TempDir()
	started, end := filepath.Join(dir, "started"), filepath.Join(dir, "end")
	holder, held := run(t, servers, "--json", "--label", "night\u202eshift", "job", "--", "sh", "-c", `echo >"$0"; until test -e "$1"; do sleep 0.01; done`, started, end)
	appears(t, started, held)
	waiter, waited := run(t, servers, "--json", "-w", "4s", "job", "--", "true")
	if code := exitCode(t, waiter.Wait()); code != exitHeld {
		t.Errorf("exit %d, %s", code, waited)
	}
	lines := readLog(t, waited.String())
	if want := []string{"waiting", "held"}; !slices.Equal(events(lines), want) {
		t.Fatalf("%s, want %q", waited, want)
	}
	for _, l := range lines {
		if !strings.Contains(jsonText(t, l["holders"]), "night\u202eshift") || l.text("level") != "INFO" || l.text("name") != "job" {
			t.Errorf("%v", l)
		}
	}
	if lines[0]["place"] != 1.0 || lines[0]["waited_ms"] == nil || lines[1]["exit"] != 75.0 {
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

// TestLogOfALostLockHasWhatWasDone, and metrics name the cause and the nodes.
func TestLogOfALostLockHasWhatWasDone(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	dir := t.TempDir()
	started, file := filepath.Join(dir, "started"), filepath.Join(dir, "job.prom")
	cmd, stderr := run(t, servers, "--json", "--metrics", file, "--ttl", "6s", "job", "--", "sh", "-c", `trap "" TERM; echo >"$0"; while :; do sleep 0.01; done`, started)
	appears(t, started, stderr)
	servers[0].Kill()
	servers[1].Freeze()
	if code := exitCode(t, cmd.Wait()); code != exitLost {
		t.Errorf("exit %d, %s", code, stderr)
	}
	lines := readLog(t, stderr.String())
	token := find(t, lines, "acquired").text("token")
	steps := slices.DeleteFunc(events(lines), func(e string) bool { return e == "extending" })
	if want := strings.Fields("acquired started losing signal signal ended lost"); !slices.Equal(steps, want) {
		t.Fatalf("%q: %s, want %q", steps, stderr, want)
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
	lines = slices.DeleteFunc(lines, func(l logLine) bool { return l.text("event") != "signal" })
	if lines[0].text("signal") != "SIGTERM" || lines[1].text("signal") != "SIGKILL" {
		t.Errorf("signals %v", lines)
	}

	values := checkMetrics(t, file)
	up := func(i int) string { return metric(values, "node_up", "name", "job", "node", servers[i].URL()) }
	if metric(values, "lost", "name", "job", "cause", causeNotExtended) != "1" || metric(values, "outcome", "name", "job", "outcome", "lost") != "1" ||
		up(0) != "0" || up(1) != "0" || up(2) != "1" {
		t.Errorf("%v", values)
	}
	// A quorum is there again, and one node is empty: it is quarantined.
	servers[1].Thaw()
	servers[0].Restart()
	if !poll.Holds(poll.Patience, func() bool {
		cmd, _ := run(t, servers, "-q", "--metrics", file, "job", "--", "true")
		code := exitCode(t, cmd.Wait())
		values = checkMetrics(t, file)
		return code == 0 && metric(values, "node_quarantined", "name", "job", "node", servers[0].URL()) == "1"
	}) {
		t.Errorf("no quarantine is shown: %v", values)
	}
	if metric(values, "node_quarantined", "name", "job", "node", servers[2].URL()) != "0" || up(0) != "1" {
		t.Errorf("%v", values)
	}
}

func TestLogOfALeaderHasEveryTerm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := command(t, "lead", "--json", "--nodes", "sqlite:"+filepath.Join(dir, "locks.db"), "--max-hold", "2s", "app", "--",
		"sh", "-c", `echo >>"$0"; test $(wc -l <"$0") -ge 2 || exec sleep 1000`, filepath.Join(dir, "terms"))
	lines := readLog(t, stderr)
	// The lock that is being lost is released as soon as CMD has ended.
	want := regexp.MustCompile(`^(acquired started losing signal (signal )?ended (released )?lost )+acquired started ended released exited$`)
	if got := strings.Join(events(lines), " "); code != 0 || !want.MatchString(got) {
		t.Errorf("exit %d, %s: %s", code, got, stderr)
	}
	if l := find(t, lines, "lost"); l.text("cause") != causeMaxHold || l.text("token") != find(t, lines, "acquired").text("token") {
		t.Errorf("%v", l)
	}
}

// TestStderrIsTheLogAlone has every message that is not about a run, too.
func TestStderrIsTheLogAlone(t *testing.T) {
	buildCommand(t) // into the former folder
	t.Setenv("REDLATCH_STATE_DIR", t.TempDir())
	for _, c := range []struct {
		args []string
		want string // the events
	}{
		{[]string{"run", "--json", "--bogus", "job", "--", "true"}, "usage"},
		{[]string{"run", "-q", "--json", "--nodes", "local", "--ttl", "1h", "job", "--", "true"}, "usage"},
		{[]string{"run", "--json", "job", "--", "no-such-program"}, "not_found"},
		{[]string{"run", "--json", "job", "--", "true"}, "warning acquired started ended released exited"}, // locks are local
		{[]string{"run", "--json", "-q", "--nodes", "local", "job", "--", "true"}, ""},
		{[]string{"run", "--json", "-q", "--nodes", "local", "job", "--", "false"}, "ended"},
		{[]string{"run", "--json", "-n", "--nodes", "redis://:secret@127.0.0.1:1", "job", "--", "true"}, "warning no_quorum"},
		{[]string{"lead", "--json", "--on-lost", "ignore", "job", "--", "true"}, "usage"},
		{[]string{"lock", "--json", "--nodes", "local", "job2"}, ""},
		{[]string{"lock", "--json", "-n", "--nodes", "local", "job2"}, "held"},
		{[]string{"lock", "--json", "-q", "-n", "--nodes", "local", "job2"}, ""},
		{[]string{"unlock", "--json", "--nodes", "local", "no-handle"}, "usage"},
	} {
		_, _, stderr := command(t, c.args...)
		if got := strings.Join(events(readLog(t, stderr)), " "); got != c.want || strings.Contains(stderr, "secret") {
			t.Errorf("%q: %q, want %q; %s", c.args, got, c.want, stderr)
		}
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
		{"run", "-n", "--json", "--nodes", nodes, name, "--", "true"},
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
