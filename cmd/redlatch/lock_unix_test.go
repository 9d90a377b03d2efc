//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// handleOf takes a lock on nodes and returns its handle.
func handleOf(t testing.TB, nodes, name string, args ...string) string {
	t.Helper()
	code, stdout, stderr := command(t, append([]string{"lock", "-n", "--json", "--nodes", nodes, name}, args...)...)
	var locked struct{ Handle string }
	if err := json.Unmarshal([]byte(stdout), &locked); code != 0 || err != nil {
		t.Fatalf("lock: exit %d, %v, %s", code, err, stderr)
	}
	return locked.Handle
}

func TestLockOnAQuorumOutlivesTheCommandAndAMinority(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 5)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	handle := handleOf(t, nodes, "job", "--ttl", "30s") // longer than this test takes on a busy machine
	for i, s := range servers {
		if keys := s.Keys(); len(keys) != 1 {
			t.Errorf("node %d has %q after the command has ended", i, keys)
		}
	}
	servers[0].Kill()
	servers[1].Kill()
	if code, _, stderr := commandWith(t, strings.NewReader(handle), "extend", "--nodes", nodes, "-"); code != 0 {
		t.Errorf("extend: exit %d, %s", code, stderr)
	}
	on(nodes).run(t, exitHeld, "run -n job -- true")
	// The cluster parameters are those that the nodes are marked with.
	on(nodes).run(t, exitUsage, "lock --ttl 31s other").err("--ttl is 31s: must be between 10ms and 30s")
	servers[2].Freeze()
	defer servers[2].Thaw()
	for _, verb := range []string{"extend", "unlock"} {
		if code, _, stderr := commandWith(t, strings.NewReader(handle), verb, "--nodes", nodes, "-"); code != exitNoQuorum || !strings.Contains(stderr, "no quorum (3 of 5 needed)") {
			t.Errorf("%s without a quorum: exit %d, %s", verb, code, stderr)
		}
	}
}
