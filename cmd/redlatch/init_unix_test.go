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
	abc, abd := these(servers[:3]...), these(servers[0], servers[1], servers[3])
	refusal := abc.run(t, exitNoQuorum, "run -n job -- true").err("wait until quarantine ends, as redlatch init does").lines(1)
	if !quarantined.MatchString(refusal.stderr) {
		t.Errorf("run on new servers: %s", refusal.stderr)
	}
	abc.run(t, 0, "init --no-wait").times(3, "quarantined for another")
	abc.run(t, 0, "init --assume-fresh --yes").times(3, "trusted; max TTL 30s, window 10s, quarantine 32s")
	abc.run(t, 0, "run -n job -- true")

	servers[1].Do("FLUSHALL")
	abc.run(t, exitUsage, "init --assume-fresh --yes").out("not marked").err("not new")
	abd.run(t, exitUsage, "run job -- true").err("this client lacks " + servers[2].URL())
	abd.run(t, 0, "init --no-wait --json --former "+string(abc)).times(4, `"trusted":false`).times(4, `"reason":"membership"`).
		err("no longer a member: " + servers[2].URL() + "; stop")
	abd.run(t, exitUsage, "init --max-ttl 20s").err("--max-ttl is 20s")
	servers[3].Kill()
	abd.run(t, exitNoQuorum, "init").out("refused")
}

func TestInitShowsAndFinishesAChangeThatStoppedHalfWay(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	declareNew(t, servers[:3], "--max-ttl", "2s")
	abc, abd := these(servers[:3]...), these(servers[0], servers[1], servers[3])
	nodes, err := direct.Nodes(servers[0].URL())
	must(t, err)
	defer nodes[0].Close()
	_, err = nodes[0].(node.Guarded).Mark(t.Context(), node.MarkRequest{Mark: node.MarkBar, Guard: &node.Guard{
		Membership: "0123456789abcdef", Nodes: "a b d", MaxTTL: time.Second, Window: time.Second, Quarantine: time.Second,
	}})
	must(t, err)
	abc.run(t, 0, "run -n job -- true") // two of the old membership are left
	for _, list := range []on{abc, abd} {
		list.run(t, exitUsage, "init --max-ttl 2s").times(1, "barred: it grants nothing").err("run the same change again")
	}
	abc.run(t, exitEndangered, "doctor").out("barred: ", "run the same change again")
	abd.run(t, 0, "init --max-ttl 2s --former "+string(abc)).times(3, "trusted; max TTL 2s")
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
