//go:build unix

package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestInitSetsHowManyReplicasAreRequired goes from none to one and back, on a
// server whose replica dies.
func TestInitSetsHowManyReplicasAreRequired(t *testing.T) {
	t.Parallel()
	master := servertest.Redis(t, 1, "--repl-diskless-sync-delay", "0")[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := servertest.Redis(t, 1, "--replicaof", host, port)[0]
	for end := time.Now().Add(30 * time.Second); !strings.Contains(master.Do("INFO", "replication"), "state=online"); {
		if time.Now().After(end) {
			t.Fatal("the replica is not online")
		}
		time.Sleep(20 * time.Millisecond) // nothing reports when it is
	}
	node := []string{"--guard", "on", "--nodes", master.URL()}
	run := func(args ...string) (int, string, string) {
		t.Helper()
		return command(t, append(append(args[:1:1], node...), args[1:]...)...)
	}
	for _, bad := range [][]string{{"--replicas", "-2"}, {"--replicas", "101"}} {
		if code, _, stderr := run(append([]string{"init"}, bad...)...); code != exitUsage || strings.Count(stderr, "\n") != 1 {
			t.Errorf("init %q: exit %d, %s", bad, code, stderr)
		}
	}
	code, stdout, stderr := run(append([]string{"init", "--assume-fresh", "--yes", "--replicas", "1"}, shortBounds...)...)
	if code != 0 || !strings.Contains(stdout, "quarantine 7.2s, 1 of 1 required replicas online (lag 2s or less)") {
		t.Errorf("init --replicas 1: exit %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr = run("run", "job", "--ttl", "2s", "--", "true"); code != 0 {
		t.Errorf("run: exit %d, %s", code, stderr)
	}
	replica.Kill()
	for end := time.Now().Add(30 * time.Second); ; {
		if code, _, stderr = run("run", "-n", "job", "--ttl", "2s", "--", "true"); code == exitNoQuorum && strings.Contains(stderr, "UNREPLICATED 0 of 1 required replicas") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("run without the replica: exit %d, %s", code, stderr)
		}
	}
	if code, stdout, _ = run("doctor", "--ready"); code != exitNoQuorum || !strings.Contains(stdout, "0 of 1 required replicas are online") {
		t.Errorf("doctor --ready without the replica: exit %d, %s", code, stdout)
	}
	code, stdout, stderr = run(append([]string{"init", "--json", "--replicas", "0", "--former", master.URL()}, shortBounds...)...)
	if code != 0 || strings.Contains(stdout, `"replicas"`) || !strings.Contains(stdout, `"quarantine_ms":3200}`) {
		t.Errorf("init --replicas 0: exit %d, %s%s", code, stdout, stderr)
	}
}
