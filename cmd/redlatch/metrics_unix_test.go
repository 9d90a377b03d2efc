//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/textfile"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// checkMetrics has promtool check a text, and returns the value of each series.
func checkMetrics(t testing.TB, path string) map[string]string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if testing.Short() {
			t.Skip("it needs promtool")
		}
		t.Fatal("this test needs promtool: install prometheus with the system's package manager, or run make deps")
	}
	text, err := os.ReadFile(path)
	must(t, err)
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v, %s\n%s", err, out, text)
	}
	values, err := textfile.Read(path, metricPrefix)
	must(t, err)
	return values
}

// metric is the value of a metric, with labels as pairs.
func metric(values map[string]string, name string, labels ...string) string {
	return values[textfile.Series(metricPrefix+name, labels...)]
}

// oddNames are names that break careless formats.
var oddNames = []string{
	"backup", `quote " and \ backslash`, `ends in \`, `x",name="y`, `{} 7 # HELP`, "\u202etxt.exe", "a\u200bb", "é 日本 \U0001F512", strings.Repeat("n", 512), strings.Repeat(`"\`, 256),
}

func TestMetricsOfEveryNamePassPromtool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, state := filepath.Join(dir, "all.prom"), filepath.Join(dir, "locks.db")
	args := append([]string{"run", "--nodes", "sqlite:" + state, "--metrics", file}, oddNames...)
	before := time.Now().Add(-time.Millisecond)
	during := filepath.Join(dir, "during.prom")
	code, _, stderr := command(t, append(args, "--", "sh", "-c", `cp "$0" "$1"; sleep 0.1; exit 3`, file, during)...)
	if code != 3 || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	running, ended := checkMetrics(t, during), checkMetrics(t, file)
	for _, name := range oddNames {
		at := func(values map[string]string, metricName string, labels ...string) string {
			return metric(values, metricName, append([]string{"name", name}, labels...)...)
		}
		for _, c := range []struct{ what, got, want string }{
			{"running meanwhile", at(running, "running"), "1"},
			{"waiting meanwhile", at(running, "waiting"), "0"},
			{"exit code meanwhile", at(running, "exit_code"), ""},
			{"running", at(ended, "running"), "0"},
			{"exit code", at(ended, "exit_code"), "3"},
			{"outcome", at(ended, "outcome", "outcome", "ran"), "1"},
			{"another outcome", at(ended, "outcome", "outcome", "held"), "0"},
			{"lost", at(ended, "lost", "cause", "taken"), "0"},
			{"last success", at(ended, "last_success_timestamp_seconds"), ""},
			{"node", at(ended, "node_up", "node", "sqlite:"+state), "1"},
			{"quarantine", at(ended, "node_quarantined", "node", "sqlite:"+state), "0"},
			{"start", at(running, "start_timestamp_seconds"), at(ended, "start_timestamp_seconds")},
		} {
			if c.got != c.want {
				t.Errorf("%q: %s is %q, want %q", name, c.what, c.got, c.want)
			}
		}
		number := func(name string) float64 {
			f, err := strconv.ParseFloat(at(ended, name), 64)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return f
		}
		start, end, hold := number("start_timestamp_seconds"), number("end_timestamp_seconds"), number("hold_seconds")
		if start < float64(before.UnixMilli())/1000 || end > float64(time.Now().UnixMilli())/1000 || hold < 0.1 || start+number("wait_seconds")+hold > end+0.01 {
			t.Errorf("%q: start %v, end %v, hold %v", name, start, end, hold)
		}
	}
}

// TestMetricsSayHowARunEnded has one job run again and again with the same file.
func TestMetricsSayHowARunEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, state := filepath.Join(dir, "job.prom"), filepath.Join(dir, "locks.db")
	holder := exec.Command("redlatch", "run", "--nodes", "sqlite:"+state, "taken", "--", "sh", "-c", `echo >"$0"; exec sleep 1000`, filepath.Join(dir, "held"))
	must(t, holder.Start())
	t.Cleanup(func() { holder.Process.Signal(syscall.SIGTERM); holder.Wait() })
	appears(t, filepath.Join(dir, "held"))
	success := ""
	for _, c := range []struct {
		outcome string
		code    int
		cause   string
		args    []string
	}{
		{"ran", 0, "", []string{"job", "--", "true"}},
		{"ran", 7, "", []string{"job", "--", "sh", "-c", "exit 7"}},
		{"ran", 143, "", []string{"job", "--", "sh", "-c", "kill -TERM $$"}},
		{"lost", 79, "max_hold", []string{"--max-hold", "300ms", "job", "--", "sleep", "1000"}},
		{"cannot_run", 127, "", []string{"job", "--", "no-such-program"}},
		{"refused", 64, "", []string{"-n", "-w", "1s", "job", "--", "true"}},
		{"ran", 0, "", []string{"--once", "monday", "job", "--", "true"}},
		{"completed", 0, "", []string{"--once", "monday", "job", "--", "true"}},
	} {
		code, _, stderr := command(t, append([]string{"run", "--nodes", "sqlite:" + state, "--metrics", file}, c.args...)...)
		values := checkMetrics(t, file)
		if code != c.code || metric(values, "exit_code", "name", "job") != strconv.Itoa(c.code) {
			t.Errorf("%q: exit %d, and in the file %s, want %d; %s", c.args, code, metric(values, "exit_code", "name", "job"), c.code, stderr)
		}
		for _, word := range outcomes {
			if got := metric(values, "outcome", "name", "job", "outcome", word); got != bit(word == c.outcome) {
				t.Errorf("%q: outcome %s is %s", c.args, word, got)
			}
		}
		for _, cause := range lostCauses {
			if got := metric(values, "lost", "name", "job", "cause", cause); got != bit(cause == c.cause) {
				t.Errorf("%q: lost by %s is %s", c.args, cause, got)
			}
		}
		now := metric(values, "last_success_timestamp_seconds", "name", "job")
		if succeeded := c.outcome == "ran" && c.code == 0; now == "" || succeeded == (now == success) {
			t.Errorf("%q: the last success is %s, and was %s", c.args, now, success)
		}
		success = now
	}
	// Another name in the same file: the series of the former are gone.
	if code, _, _ := command(t, "run", "--nodes", "sqlite:"+state, "--metrics", file, "-n", "-E", "0", "taken", "--", "true"); code != 0 {
		t.Errorf("exit %d", code)
	}
	values := checkMetrics(t, file)
	if metric(values, "outcome", "name", "taken", "outcome", "held") != "1" || metric(values, "hold_seconds", "name", "taken") != "0.000" ||
		metric(values, "last_success_timestamp_seconds", "name", "taken") != "" || metric(values, "exit_code", "name", "job") != "" {
		t.Errorf("held: %v", values)
	}
}

func TestMetricsOfALostLockNameTheCauseAndTheNodes(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	dir := t.TempDir()
	file, started := filepath.Join(dir, "job.prom"), filepath.Join(dir, "started")
	cmd, stderr := run(t, servers, "--metrics", file, "--ttl", "2s", "job", "--", "sh", "-c", `echo >"$0"; exec sleep 1000`, started)
	appears(t, started, stderr)
	servers[0].Kill()
	servers[1].Freeze()
	if code := exitCode(t, cmd.Wait()); code != exitLost {
		t.Errorf("exit %d, %s", code, stderr)
	}
	values := checkMetrics(t, file)
	up := func(i int) string { return metric(values, "node_up", "name", "job", "node", servers[i].URL()) }
	if metric(values, "lost", "name", "job", "cause", causeNotExtended) != "1" || metric(values, "outcome", "name", "job", "outcome", "lost") != "1" ||
		up(0) != "0" || up(1) != "0" || up(2) != "1" {
		t.Errorf("%v", values)
	}
	servers[1].Thaw()

	// A quorum is there again, and one node is empty: it is quarantined.
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

func TestMetricsThatCannotBeWrittenAreAnErrorBeforeCMD(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state, ran := filepath.Join(dir, "locks.db"), filepath.Join(dir, "ran")
	script := filepath.Join(dir, "script.sh")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\necho precious\n"), 0o700))
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for _, verb := range []string{"run", "lead"} {
		for name, file := range map[string]string{
			"no folder": filepath.Join(dir, "none", "job.prom"), "a folder": dir, "a file of others": script, "a pipe": pipe, "a file as the folder": filepath.Join(script, "job.prom"),
		} {
			code, _, stderr := command(t, verb, "--nodes", "sqlite:"+state, "--metrics", file, "job", "--", "touch", ran)
			if code != exitCannotCreate || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "redlatch: --metrics "+file+" cannot be written, and CMD was not run: ") {
				t.Errorf("%s, %s: exit %d, %s", verb, name, code, stderr)
			}
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("CMD ran")
	}
	if text, _ := os.ReadFile(script); !strings.Contains(string(text), "precious") {
		t.Errorf("a file of others was replaced: %s", text)
	}
}

// TestMetricsThatCannotBeWrittenAtTheEndLeaveTheExitStatus has CMD remove the
// folder of the file.
func TestMetricsThatCannotBeWrittenAtTheEndLeaveTheExitStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "metrics")
	must(t, os.Mkdir(folder, 0o700))
	file, state := filepath.Join(folder, "job.prom"), filepath.Join(dir, "locks.db")
	code, _, stderr := command(t, "run", "--nodes", "sqlite:"+state, "--metrics", file, "job", "--", "sh", "-c", `rm -r "$0"; exit 5`, folder)
	if code != 5 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "could not be written at the end, and is out of date") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := command(t, "run", "-n", "--nodes", "sqlite:"+state, "job", "--", "true"); code != 0 {
		t.Errorf("the lock was not released: exit %d, %s", code, stderr)
	}
}

// TestMetricsThatBecomeUnwritableDuringTheWaitAreAnErrorBeforeCMD: the lock was
// acquired by then, and is released.
func TestMetricsThatBecomeUnwritableDuringTheWaitAreAnErrorBeforeCMD(t *testing.T) {
	t.Parallel()
	dir, release := holdJob(t)
	folder := filepath.Join(dir, "metrics")
	must(t, os.Mkdir(folder, 0o700))
	file, ran := filepath.Join(folder, "job.prom"), filepath.Join(dir, "ran")
	var stderr bytes.Buffer
	waiter := exec.Command("redlatch", "run", "-q", "--once", "monday", "--metrics", file, "job", "--", "touch", ran)
	waiter.Env, waiter.Stderr = append(os.Environ(), "REDLATCH_STATE_DIR="+dir), &stderr
	must(t, waiter.Start())
	defer waiter.Process.Kill()
	if !poll.Holds(poll.Patience, func() bool {
		values, _ := textfile.Read(file, metricPrefix)
		return metric(values, "waiting", "name", "job") == "1"
	}) {
		t.Fatal("the file does not say that it waits")
	}
	must(t, os.RemoveAll(folder))
	release()
	if code := exitCode(t, waiter.Wait()); code != exitCannotCreate || !strings.Contains(stderr.String(), "CMD was not run") {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("CMD ran")
	}
	after := exec.Command("redlatch", "run", "-n", "job", "--", "true")
	after.Env = waiter.Env
	if out, err := after.CombinedOutput(); err != nil {
		t.Errorf("the lock was not released: %v, %s", err, out)
	}
}

// TestLeaderGoesOnWithoutItsMetrics: from the second term on, a file that cannot
// be written is no reason to have no leader.
func TestLeaderGoesOnWithoutItsMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "metrics")
	must(t, os.Mkdir(folder, 0o700))
	var stderr bytes.Buffer
	lead := exec.Command("redlatch", "lead", "--nodes", "sqlite:"+filepath.Join(dir, "locks.db"), "--max-hold", "1s", "--metrics", filepath.Join(folder, "app.prom"), "app", "--",
		"sh", "-c", `rm -rf "$0"; echo >>"$1"; test $(wc -l <"$1") -ge 3 || exec sleep 1000`, folder, filepath.Join(dir, "terms"))
	lead.Stderr = &stderr
	if code := exitCode(t, lead.Run()); code != 0 {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
	if text := stderr.String(); !strings.Contains(text, "cannot be written") || !strings.Contains(text, "could not be written at the end") {
		t.Errorf("it does not say so: %s", text)
	}
}
