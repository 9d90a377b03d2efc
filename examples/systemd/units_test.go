//go:build unix

// Package systemd runs what the units in this folder start.
package systemd

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/deploytest"
)

func TestMain(m *testing.M) { deploytest.Main(m) }

// unit is what a file says: for each section and key its values, in order.
type unit map[string][]string

func readUnit(t *testing.T, file string) unit {
	t.Helper()
	f, err := os.Open(file)
	check.Must(t, err)
	defer f.Close()
	u, section := unit{}, ""
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case !ok || section == "" || strings.HasSuffix(line, `\`):
			t.Fatalf("%s: %q", file, line)
		default:
			u[section+"."+key] = append(u[section+"."+key], value)
		}
	}
	return u
}

// machine is where units run: paths of theirs are replaced by some of the
// test's.
type machine struct {
	t       *testing.T
	dir     string
	replace *strings.Replacer
}

// newMachine starts three servers as redis-locks.service does.
func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	m := &machine{t: t, dir: dir}
	start := strings.Fields(readUnit(t, "redis-locks.service")["Service.ExecStart"][0])
	if start[0] != "/usr/bin/redis-server" || start[1] != "/etc/redis/redis-locks.conf" {
		t.Fatalf("it starts %q", start)
	}
	replaced := []string{
		"/usr/bin/redlatch", deploytest.Program(t),
		"/usr/local/bin/report", filepath.Join(dir, "report"), "/usr/local/bin/scheduler", filepath.Join(dir, "scheduler"),
		"/var/lib/prometheus/node-exporter", dir, "%d", filepath.Join(dir, "credentials"),
	}
	acl, err := filepath.Abs("redis-locks.acl")
	check.Must(t, err)
	conf, err := os.ReadFile("redis-locks.conf")
	check.Must(t, err)
	for _, host := range []string{"a", "b", "c"} {
		data := filepath.Join(dir, host)
		check.Must(t, os.Mkdir(data, 0o700))
		file := filepath.Join(data, "redis.conf")
		text := strings.NewReplacer("/var/lib/redis-locks", data, "/etc/redis/redis-locks.acl", acl).Replace(string(conf))
		check.Must(t, os.WriteFile(file, []byte(text), 0o600))
		replaced = append(replaced, "@"+host+":6379", "@"+deploytest.Serve(t, append([]string{file}, start[2:]...)...))
	}
	check.Must(t, os.Mkdir(filepath.Join(dir, "credentials"), 0o700))
	check.Must(t, os.WriteFile(filepath.Join(dir, "credentials", "redis"), []byte("change-me\n"), 0o600))
	m.replace = strings.NewReplacer(replaced...)
	return m
}

// start is the command that a unit starts. No value of these units has quotes but the
// command itself, which a shell splits in the same way.
func (m *machine) start(file string) deploytest.Command {
	m.t.Helper()
	u := readUnit(m.t, file)
	lines := u["Service.ExecStart"]
	if len(lines) != 1 {
		m.t.Fatalf("%s has %d ExecStart", file, len(lines))
	}
	line := m.replace.Replace(strings.NewReplacer("%%", "%", "$$", "$").Replace(lines[0]))
	env := strings.Fields(m.replace.Replace(strings.Join(u["Service.Environment"], " ")))
	return deploytest.Command{Args: []string{"/bin/sh", "-c", "exec " + line}, Env: env, Dir: m.dir}
}

func TestUnitsRunWhatTheySay(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	nightly := m.start("nightly.service")
	program := deploytest.Program(t)
	deploytest.DeclareNew(t, deploytest.Command{Args: []string{program, "init"}, Env: nightly.Env})

	// The servers are as doctor wants them, for the user that the units name.
	doctor := deploytest.Command{Args: []string{program, "doctor"}, Env: nightly.Env}
	if code, out := doctor.Run(t); code != 0 || strings.Contains(out, "danger") {
		t.Errorf("doctor: exit %d, %s", code, out)
	}

	// Every machine starts the job, and one runs it. A second time the
	// occurrence is done. Nothing is left out if midnight is between the two.
	ran := filepath.Join(m.dir, "ran")
	deploytest.Script(t, filepath.Join(m.dir, "report"), "#!/bin/sh\necho $REDLATCH_TOKEN >>"+ran+"\n")
	for range 2 {
		if code, out := nightly.Run(t); code != 0 || !strings.Contains(out, `"event":"`) {
			t.Fatalf("nightly.service: exit %d, %s", code, out)
		}
	}
	if text, err := os.ReadFile(ran); err != nil || len(strings.Fields(string(text))) != 1 {
		t.Errorf("the report ran %q, %v", text, err)
	}
	metrics, err := os.ReadFile(filepath.Join(m.dir, "nightly.prom"))
	if err != nil || !strings.Contains(string(metrics), `redlatch_run_outcome{name="nightly",outcome="completed"} 1`) ||
		!strings.Contains(string(metrics), `redlatch_run_last_success_timestamp_seconds{name="nightly"} 1`) {
		t.Errorf("%v, %s", err, metrics)
	}

	// The scheduler ends by itself here, and so does its leader.
	deploytest.Script(t, filepath.Join(m.dir, "scheduler"), "#!/bin/sh\necho \"leads with $REDLATCH_TOKEN\"\nexit 3\n")
	if code, out := m.start("scheduler.service").Run(t); code != 3 || !strings.Contains(out, "leads with 0") {
		t.Errorf("scheduler.service: exit %d, %s", code, out)
	}
	// A unit whose Environment is lost must not lock on one machine alone.
	for _, file := range []string{"nightly.service", "scheduler.service"} {
		c := m.start(file)
		c.Env = []string{"REDLATCH_STATE_DIR=" + m.dir}
		if code, out := c.Run(t); code != 64 || !strings.Contains(out, "no nodes are configured") {
			t.Errorf("%s: exit %d, %s", file, code, out)
		}
	}
}

// TestUnitsPassTheCheckOfSystemd, which finds keys that systemd does not know.
func TestUnitsPassTheCheckOfSystemd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it needs systemd-analyze")
	}
	dir := t.TempDir()
	// Programs must exist for the check.
	replace := strings.NewReplacer("/usr/bin/redis-server", "/bin/true", "/usr/bin/redlatch", "/bin/true")
	args := []string{"verify", "--man=no", "--recursive-errors=no"}
	for _, file := range []string{"redis-locks.service", "nightly.service", "nightly.timer", "scheduler.service"} {
		text, err := os.ReadFile(file)
		check.Must(t, err)
		args = append(args, filepath.Join(dir, file))
		check.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(replace.Replace(string(text))), 0o644))
	}
	if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze, which make deps installs: %v, %s", err, out)
	}
}
