//go:build unix

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestDoctorTellsByItsExitCodeWhetherLocksAreInDanger(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	code, stdout, stderr := command(t, "doctor", "--samples", "5", "--nodes", nodes)
	if code != exitEndangered || stderr != "" || !strings.HasPrefix(stdout, "danger   marker\n         0 of 3 nodes are trusted; quorum is 2") || strings.Count(stdout, "not marked") != 3 || !strings.Contains(stdout, "fix: run redlatch init") {
		t.Errorf("new servers: exit %d, %s%s", code, stdout, stderr)
	}
	declareNew(t, servers)
	code, stdout, _ = command(t, "doctor", "--nodes", nodes)
	if code != 0 || !strings.Contains(stdout, "suggested: --ttl ") || !strings.Contains(stdout, " --node-timeout ") || strings.Contains(stdout, "danger") || strings.Contains(stdout, "\x1b") {
		t.Errorf("servers in service: exit %d, %s", code, stdout)
	}
	if _, wide, _ := command(t, "doctor", "--all", "--samples", "5", "--nodes", nodes); strings.Count(wide, "it is a master") != 3 {
		t.Errorf("in full: %s", wide)
	}
	servers[1].Do("CONFIG", "SET", "maxmemory", "100mb")
	servers[1].Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	code, stdout, stderr = command(t, "doctor", "--samples", "5", "--nodes", nodes)
	if code != exitEndangered || stderr != "" || !strings.HasPrefix(stdout, "danger   eviction, "+servers[1].URL()+"\n") {
		t.Errorf("a server that evicts: exit %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = command(t, "doctor", "--json", "--samples", "5", "--nodes", nodes)
	var last struct{ Event, Worst string }
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if code != exitEndangered || last.Event != "checkup" || last.Worst != "danger" {
		t.Errorf("in JSON: exit %d, %s", code, stdout)
	}
	servers[1].Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	servers[0].Kill()
	code, stdout, stderr = command(t, "doctor", "--samples", "5", "--nodes", nodes)
	if code != exitEndangered || strings.Contains(stdout, "danger") || !strings.Contains(stdout, "warning  quorum") || stderr != "redlatch: 1 of 3 nodes does not answer: "+servers[0].URL()+"\n" {
		t.Errorf("one node is down: exit %d, %s%s", code, stdout, stderr)
	}
	servers[1].Kill()
	code, stdout, stderr = command(t, "doctor", "--samples", "5", "--nodes", nodes)
	if code != exitNoQuorum || !strings.Contains(stdout, "danger   quorum") || !strings.Contains(stderr, "1 of 3 nodes answer") {
		t.Errorf("a majority is away: exit %d, %s%s", code, stdout, stderr)
	}
	servers[2].Kill()
	if code, _, _ = command(t, "doctor", "--samples", "5", "--nodes", nodes); code != exitNoQuorum {
		t.Errorf("all are away: exit %d", code)
	}
}

// TestFlagsThatDoctorNamesExist reads the sources of its findings.
func TestFlagsThatDoctorNamesExist(t *testing.T) {
	known := map[string]bool{}
	for _, cmd := range everyCommand() {
		cmd.InitDefaultHelpFlag()
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	seen := 0
	for _, file := range []string{"doctor.go", "../../admin/examine.go", "../../admin/change.go", "../../internal/runner/guard.go", "../../store/redis/examine.go", "../../store/sqlite/examine.go"} {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, found := range regexp.MustCompile(`[ ":]--([a-z][a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if seen++; !known[found[1]] {
				t.Errorf("%s names --%s, and no command has it", file, found[1])
			}
		}
	}
	if seen < 8 {
		t.Errorf("found %d flags", seen)
	}
	if text, _ := os.ReadFile("doctor.go"); strings.Contains(string(text), "node time limit %v") {
		t.Error("doctor recommends a node time limit without its flag")
	}
}
