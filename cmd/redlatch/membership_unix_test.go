//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestRunWithAMembershipOfOneBesideOneOfThreeIsRefused prevents two holders of one
// lock, one in each membership.
func TestRunWithAMembershipOfOneBesideOneOfThreeIsRefused(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	abc, a := these(servers...), these(servers[0])
	former := strings.Join(slices.Sorted(slices.Values(servertest.Addresses(servers))), ",")
	a.run(t, exitUsage, "run -n pay -- echo ran").times(0, "ran").
		err("this client lacks ", servers[1].URL(), servers[2].URL(), "use that membership", "redlatch init --nodes "+string(a)+" --former "+former)
	a.run(t, exitEndangered, "doctor").out("danger   marker", servers[2].URL())
	a.run(t, 0, "run -n --any-membership other -- echo ran").out("ran\n")
	a.run(t, exitUsage, "init --former "+string(a)).err("former membership differs from the one on " + string(a))
	abc.run(t, 0, "run -n pay -- true")
}

// TestServerThatLostItsDataComesBackThroughCommandsOfOneLock sends the servers
// only requests of commands that end at once.
func TestServerThatLostItsDataComesBackThroughCommandsOfOneLock(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	// A quarantine that a command of a busy machine does not miss.
	declareNew(t, servers, "--max-ttl", "5s")
	servers[0].Do("FLUSHALL")
	const lock, run = "lock --nodes %s job%d", "run --json --nodes %s job%d -- true"
	commands := 0
	// Until it did what it should; on a busy machine an answer may be late.
	repeat := func(line string, done func(stderr string) bool) {
		t.Helper()
		poll.Until(t, line, func() bool {
			commands++
			code, _, stderr := command(t, strings.Fields(fmt.Sprintf(line, these(servers...), commands))...)
			if line == lock && strings.Count(stderr, "\n") > 1 {
				t.Errorf("it says more than one line: %q", stderr)
			}
			return code == 0 && done(stderr)
		})
	}
	repeat(lock, func(stderr string) bool {
		return strings.HasPrefix(stderr, "redlatch: "+servers[0].URL()+": quarantined")
	})
	repeat(run, func(stderr string) bool {
		return strings.Contains(stderr, `"event":"quarantined"`) && strings.Contains(stderr, `"node":"`+servers[0].URL()+`"`)
	})
	repeat(run, func(string) bool {
		var trusted int64
		if marker := strings.Fields(servers[0].Do("GET", "redlatch:1:marker")); len(marker) > 9 {
			fmt.Sscan(marker[9], &trusted)
		}
		return trusted > 0 && trusted < time.Now().UnixMicro()
	})
	servers[1].Kill()
	repeat(run, func(string) bool { return true })
}
