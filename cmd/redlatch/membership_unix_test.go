//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestRunWithAMembershipOfOneBesideOneOfThreeIsRefused prevents two holders of one
// lock, one in each membership.
func TestRunWithAMembershipOfOneBesideOneOfThreeIsRefused(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	a := servers[0].URL()
	code, stdout, stderr := command(t, "run", "-n", "--nodes", a, "pay", "--", "echo", "ran")
	if code != exitUsage || stdout != "" {
		t.Errorf("run with a list of one: exit %d, %s%s", code, stdout, stderr)
	}
	for _, says := range []string{"missing ", servers[1].URL(), servers[2].URL(), "use that membership",
		"redlatch init --nodes " + a + " --former " + strings.Join(slices.Sorted(slices.Values(servertest.Addresses(servers))), ",")} {
		if !strings.Contains(stderr, says) {
			t.Errorf("it does not say %q: %s", says, stderr)
		}
	}
	code, stdout, _ = command(t, "doctor", "--nodes", a)
	if code != exitEndangered || !strings.Contains(stdout, "danger   marker") || !strings.Contains(stdout, servers[2].URL()) {
		t.Errorf("doctor: exit %d, %s", code, stdout)
	}
	if code, stdout, stderr = command(t, "run", "-n", "--any-membership", "--nodes", a, "other", "--", "echo", "ran"); code != 0 || stdout != "ran\n" {
		t.Errorf("run --any-membership: exit %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = command(t, "init", "--nodes", a, "--former", a); code != exitUsage || !strings.Contains(stderr, "former membership differs from the one on "+a) {
		t.Errorf("init --former of a server in service: exit %d, %s", code, stderr)
	}
	abc := strings.Join(servertest.Addresses(servers), ",")
	if code, _, stderr = command(t, "run", "-n", "--nodes", abc, "pay", "--", "true"); code != 0 {
		t.Errorf("run with the list of three: exit %d, %s", code, stderr)
	}
}

// TestServerThatLostItsDataComesBackThroughCommandsOfOneLock sends the servers
// only requests of commands that end at once.
func TestServerThatLostItsDataComesBackThroughCommandsOfOneLock(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	// A quarantine that a command of a busy machine does not miss.
	declareNew(t, servers, "--max-ttl", "5s")
	abc := strings.Join(servertest.Addresses(servers), ",")
	servers[0].Do("FLUSHALL")
	// Until it did what it should; on a busy machine an answer may be late.
	commands := 0
	repeat := func(done func(stderr string) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			commands++
			args := []string{"lock", "--nodes", abc, fmt.Sprint("job ", commands)}
			if commands%2 == 0 {
				args = append([]string{"run", "--json"}, append(args[1:], "--", "true")...)
			}
			code, _, stderr := command(t, args...)
			if args[0] == "lock" && strings.Count(stderr, "\n") > 1 {
				t.Errorf("it says more than one line: %q", stderr)
			}
			if code == 0 && done(stderr) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the last %s: exit %d, %s; the server is marked %q", args[0], code, stderr, servers[0].Do("GET", "redlatch:1:marker"))
			}
		}
	}
	repeat(func(stderr string) bool {
		return strings.HasPrefix(stderr, "redlatch: "+servers[0].URL()+": quarantined")
	})
	repeat(func(stderr string) bool {
		return strings.Contains(stderr, `"event":"quarantined"`) && strings.Contains(stderr, `"node":"`+servers[0].URL()+`"`)
	})
	repeat(func(string) bool {
		var trusted int64
		if marker := strings.Fields(servers[0].Do("GET", "redlatch:1:marker")); len(marker) > 9 {
			fmt.Sscan(marker[9], &trusted)
		}
		return trusted > 0 && trusted < time.Now().UnixMicro()
	})
	servers[1].Kill()
	repeat(func(string) bool { return true })
}
