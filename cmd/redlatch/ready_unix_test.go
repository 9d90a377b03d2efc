//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestReadyNamesTheNodesThatAreNotAndForHowLong(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	nodes := these(servers...)
	declareNew(t, servers, "--max-ttl", "3s") // a quarantine of 3.2 s
	const all = "all 3 nodes are ready\n"
	if s := nodes.run(t, 0, "doctor --ready").lines(0); s.stdout != all {
		t.Errorf("servers in service: %s", s.stdout)
	}
	servers[1].Do("FLUSHALL")
	nodes.run(t, exitNoQuorum, "doctor --ready").times(1, "\n").out(servers[1].URL()+": quarantined", "ready in ").err("1 of 3 nodes are not ready")
	if s := nodes.run(t, 0, "doctor --ready -w 1m").err("waiting for " + servers[1].URL()); s.stdout != all {
		t.Errorf("after its quarantine: %s", s.stdout)
	}
	if marker := servers[1].Do("GET", "redlatch:1:marker"); marker == "" {
		t.Error("it is ready, and not marked")
	}
	servers[2].Kill()
	began := time.Now()
	away := nodes.run(t, exitNoQuorum, "doctor --ready -w 1500ms --json").stdout
	if waited := time.Since(began); waited < 1500*time.Millisecond {
		t.Errorf("it has waited for %v", waited)
	}
	lines := strings.Split(strings.TrimSpace(away), "\n")
	var last struct {
		Node, Why string
		Ready     bool
	}
	if len(lines) != 3 || json.Unmarshal([]byte(lines[2]), &last) != nil || last.Node != servers[2].URL() || last.Ready || !strings.Contains(last.Why, "refused") {
		t.Errorf("in JSON: %s", away)
	}
	// Waiting does not help against another membership.
	these(servers[:2]...).run(t, exitUsage, "doctor --ready -w 1m").err("this client lacks " + servers[2].URL())
}

// TestReadyBeginsTheQuarantineOfNodesThatWereNeverUsed asks for servers that
// nobody has marked, and for one database.
func TestReadyBeginsTheQuarantineOfNodesThatWereNeverUsed(t *testing.T) {
	t.Parallel()
	for nodes, each := range map[on]int{these(servertest.Redis(t, 3)...): 3, on(servertest.PostgreSQL(t) + "&table=never_used"): 1} {
		nodes.run(t, exitNoQuorum, "doctor --ready").times(each, "quarantined: new, or lost its data; ready in 3")
	}
}
