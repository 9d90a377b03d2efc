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
	on("sqlite:"+state).run(t, 0, "run --metrics "+file+" -n -E 0 taken -- true")
	values := checkMetrics(t, file)
	if metric(values, "outcome", "name", "taken", "outcome", "held") != "1" || metric(values, "hold_seconds", "name", "taken") != "0.000" ||
		metric(values, "last_success_timestamp_seconds", "name", "taken") != "" || metric(values, "exit_code", "name", "job") != "" {
		t.Errorf("held: %v", values)
	}
}
