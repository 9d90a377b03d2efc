//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// buildCommand builds the command as users have it. With the race detector it
// takes the processor four times as long: many at once would test the
// machine instead. So commands that run by themselves are this one, and those
// that run in the background of a test have the race detector.
func buildCommand(t testing.TB) string {
	t.Helper()
	path, err := built()
	must(t, err)
	return path
}

// built builds it once, in the folder that apart removes.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(os.Getenv("REDLATCH_STATE_DIR"), "without-race", "redlatch")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v\n%s", err, out)
	}
	return path, nil
})

// command runs redlatch and returns its exit code, stdout and stderr.
func command(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return commandWith(t, nil, args...)
}

// commandWith is command with a stdin. A command that does not end by itself is
// killed.
func commandWith(t testing.TB, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out, err strings.Builder
	cmd := exec.CommandContext(ctx, buildCommand(t), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &err
	return exitCode(t, cmd.Run()), out.String(), err.String()
}

// quarantined is for 32 s, or less on a busy machine.
var quarantined = regexp.MustCompile(`quarantined for another [23]\d`)

func TestInitMarksNewServersAndSaysHowTheyStand(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	abc := strings.Join(servertest.Addresses(servers[:3]), ",")
	abd := strings.Join([]string{servers[0].URL(), servers[1].URL(), servers[3].URL()}, ",")

	code, _, stderr := command(t, "run", "-n", "--nodes", abc, "job", "--", "true")
	if code != exitNoQuorum || !quarantined.MatchString(stderr) || !strings.Contains(stderr, "wait until quarantine ends, as redlatch init does") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("run on new servers: exit %d, %s", code, stderr)
	}
	code, stdout, stderr := command(t, "init", "--no-wait", "--nodes", abc)
	if code != 0 || strings.Count(stdout, "quarantined for another") != 3 {
		t.Errorf("init: exit %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "init", "--assume-fresh", "--yes", "--nodes", abc)
	if code != 0 || strings.Count(stdout, "trusted; max TTL 30s, window 10s, quarantine 32s") != 3 {
		t.Errorf("init --assume-fresh: exit %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = command(t, "run", "-n", "--nodes", abc, "job", "--", "true"); code != 0 {
		t.Errorf("run: exit %d, %s", code, stderr)
	}

	servers[1].Do("FLUSHALL")
	code, stdout, stderr = command(t, "init", "--assume-fresh", "--yes", "--nodes", abc)
	if code != exitUsage || !strings.Contains(stderr, "not new") || !strings.Contains(stdout, "not marked") {
		t.Errorf("init --assume-fresh of a flushed server: exit %d, %s%s", code, stdout, stderr)
	}
	code, _, stderr = command(t, "run", "--nodes", abd, "job", "--", "true")
	if code != exitUsage || !strings.Contains(stderr, "missing "+servers[2].URL()) {
		t.Errorf("run with another membership: exit %d, %s", code, stderr)
	}
	code, stdout, stderr = command(t, "init", "--no-wait", "--json", "--nodes", abd, "--former", abc)
	if code != 0 || strings.Count(stdout, `"trusted":false`) != 4 || strings.Count(stdout, `"reason":"membership"`) != 4 ||
		!strings.Contains(stderr, "no longer a member: "+servers[2].URL()+"; stop") {
		t.Errorf("init --former: exit %d, %s%s", code, stdout, stderr)
	}
	code, _, stderr = command(t, "init", "--max-ttl", "20s", "--nodes", abd)
	if code != exitUsage || !strings.Contains(stderr, "--max-ttl is 20s") {
		t.Errorf("init with another bound: exit %d, %s", code, stderr)
	}
	servers[3].Kill()
	code, stdout, _ = command(t, "init", "--nodes", abd)
	if code != exitNoQuorum || !strings.Contains(stdout, "refused") {
		t.Errorf("init with a server down: exit %d, %s", code, stdout)
	}
}

func TestInitShowsAndFinishesAChangeThatStoppedHalfWay(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	declareNew(t, servers[:3], "--max-ttl", "2s")
	abc := strings.Join(servertest.Addresses(servers[:3]), ",")
	abd := strings.Join([]string{servers[0].URL(), servers[1].URL(), servers[3].URL()}, ",")
	nodes, err := direct.Nodes(servers[0].URL())
	must(t, err)
	defer nodes[0].Close()
	_, err = nodes[0].Do(context.Background(), node.Request{Op: node.OpMark, Mark: node.MarkBar, Guard: &node.Guard{
		Membership: "0123456789abcdef", Nodes: "a b d", MaxTTL: time.Second, Window: time.Second, Quarantine: time.Second,
	}})
	must(t, err)
	if code, _, stderr := command(t, "run", "-n", "--nodes", abc, "job", "--", "true"); code != 0 {
		t.Errorf("run with the old membership, of which two are left: exit %d, %s", code, stderr)
	}
	for _, list := range []string{abc, abd} {
		code, stdout, stderr := command(t, "init", "--nodes", list, "--max-ttl", "2s")
		if code != exitUsage || strings.Count(stdout, "barred: it grants nothing") != 1 || !strings.Contains(stderr, "run the same change again") {
			t.Errorf("init --nodes %s: exit %d, %s%s", list, code, stdout, stderr)
		}
	}
	code, stdout, stderr := command(t, "doctor", "--nodes", abc)
	if code == 0 || !strings.Contains(stdout, "barred: ") || !strings.Contains(stdout, "run the same change again") {
		t.Errorf("doctor: exit %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "init", "--nodes", abd, "--former", abc, "--max-ttl", "2s")
	if code != 0 || strings.Count(stdout, "trusted; max TTL 2s") != 3 {
		t.Errorf("init --former: exit %d, %s%s", code, stdout, stderr)
	}
}

// TestBadInputOfOperatorsIsRefusedInOneLine: the scripts have that of lock users.
func TestBadInputOfOperatorsIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"init", "x"}, {"init", "--max-ttl", "1ms"}, {"init", "--guard", "maybe"}, {"init", "--assume-fresh", "--yes", "--former", "redis://127.0.0.1:2"},
		{"init", "--nodes", "sqlite:" + t.TempDir() + "/locks.db"},
		{"doctor", "x"}, {"doctor", "--samples", "0"}, {"doctor", "--samples", "1001"}, {"doctor", "--nodes", "local", "--name", strings.Repeat("n", 600)},
		{"doctor", "--json=yaml"}, {"doctor", "--nodes", "http://x"}, {"doctor", "-w", "5s"}, {"doctor", "--ready", "-w", "-1s"}, {"doctor", "--ready", "-w", "soon"},
		{"schema"}, {"schema", "oracle"}, {"schema", "mysql", "--table", "a;b"},
	} {
		if args[0] == "init" && !slices.Contains(args, "--nodes") {
			args = append(args, "--nodes", "redis://127.0.0.1:1")
		}
		if code, _, stderr := command(t, args...); code != exitUsage || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
}
