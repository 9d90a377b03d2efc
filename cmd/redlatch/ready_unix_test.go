//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// shortBounds make a quarantine of 3.2 s.
var shortBounds = []string{"--max-ttl", "3s"}

func TestReadyNamesTheNodesThatAreNotAndForHowLong(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	declareNew(t, servers, shortBounds...)
	if code, stdout, stderr := command(t, "doctor", "--ready", "--nodes", nodes); code != 0 || stdout != "all 3 nodes are ready\n" || stderr != "" {
		t.Errorf("servers in service: exit %d, %s%s", code, stdout, stderr)
	}
	servers[1].Do("FLUSHALL")
	code, stdout, stderr := command(t, "doctor", "--ready", "--nodes", nodes)
	if code != exitNoQuorum || !strings.HasPrefix(stdout, servers[1].URL()+": quarantined") || strings.Count(stdout, "\n") != 1 ||
		!strings.Contains(stdout, "ready in ") || !strings.Contains(stderr, "1 of 3 nodes are not ready") {
		t.Errorf("one has lost its data: exit %d, %s%s", code, stdout, stderr)
	}
	began := time.Now()
	code, stdout, stderr = command(t, "doctor", "--ready", "-w", "1m", "--nodes", nodes)
	if code != 0 || stdout != "all 3 nodes are ready\n" || !strings.Contains(stderr, "waiting for "+servers[1].URL()) {
		t.Errorf("after %v: exit %d, %s%s", time.Since(began), code, stdout, stderr)
	}
	if marker := servers[1].Do("GET", "redlatch:1:marker"); marker == "" {
		t.Error("it is ready, and not marked")
	}
	servers[2].Kill()
	began = time.Now()
	code, stdout, _ = command(t, "doctor", "--ready", "-w", "1500ms", "--json", "--nodes", nodes)
	if waited := time.Since(began); code != exitNoQuorum || waited < 1500*time.Millisecond {
		t.Errorf("one is away: exit %d after %v, %s", code, waited, stdout)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var last struct {
		Node, Why string
		Ready     bool
	}
	if len(lines) != 3 || json.Unmarshal([]byte(lines[2]), &last) != nil || last.Node != servers[2].URL() || last.Ready || !strings.Contains(last.Why, "refused") {
		t.Errorf("in JSON: %s", stdout)
	}
	// Waiting does not help against another membership.
	two := strings.Join(servertest.Addresses(servers[:2]), ",")
	if code, stdout, stderr = command(t, "doctor", "--ready", "-w", "1m", "--nodes", two); code != exitUsage || !strings.Contains(stderr, "missing "+servers[2].URL()) {
		t.Errorf("another membership: exit %d, %s%s", code, stdout, stderr)
	}
}

// TestReadyBeginsTheQuarantineOfNodesThatWereNeverUsed asks for servers that
// nobody has marked, and for one database.
func TestReadyBeginsTheQuarantineOfNodesThatWereNeverUsed(t *testing.T) {
	t.Parallel()
	postgres := servertest.PostgreSQL(t) + "&table=never_used"
	for _, nodes := range []string{strings.Join(servertest.Addresses(servertest.Redis(t, 3)), ","), postgres} {
		each := strings.Count(nodes, ",") + 1
		code, stdout, stderr := command(t, "doctor", "--ready", "--nodes", nodes)
		if code != exitNoQuorum || strings.Count(stdout, "quarantined: new, or lost its data; ready in 3") != each {
			t.Errorf("%s: exit %d, %s%s", nodes, code, stdout, stderr)
		}
	}
}
