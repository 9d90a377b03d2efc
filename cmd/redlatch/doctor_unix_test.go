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
	nodes := these(servers...)
	begins := func(s said, text string) {
		t.Helper()
		if !strings.HasPrefix(s.stdout, text) {
			t.Errorf("%s begins with %s, not with %s", s.line, s.stdout, text)
		}
	}
	fresh := nodes.run(t, exitEndangered, "doctor --samples 5").times(3, "not marked").out("fix: run redlatch init", " warnings, ").lines(0)
	begins(fresh, "danger   marker\n         0 of 3 nodes are trusted; quorum is 2")
	declareNew(t, servers)
	nodes.run(t, 0, "doctor").out("suggested: --ttl ", " --node-timeout ").times(0, "danger").never("\x1b")
	nodes.run(t, 0, "doctor --all --samples 5").times(3, "it is a master")
	servers[1].Do("CONFIG", "SET", "maxmemory", "100mb")
	servers[1].Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	begins(nodes.run(t, exitEndangered, "doctor --samples 5").lines(0), "danger   eviction, "+servers[1].URL()+"\n")
	var last struct{ Event, Worst string }
	for line := range strings.Lines(nodes.run(t, exitEndangered, "doctor --json --samples 5").stdout) {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if last.Event != "checkup" || last.Worst != "danger" {
		t.Errorf("in JSON the last is %+v", last)
	}
	servers[1].Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	servers[0].Kill()
	nodes.run(t, exitEndangered, "doctor --samples 5").out("warning  quorum").times(0, "danger").err("redlatch: 1 of 3 nodes does not answer: " + servers[0].URL() + "\n").lines(1)
	servers[1].Kill()
	nodes.run(t, exitNoQuorum, "doctor --samples 5").out("danger   quorum").err("1 of 3 nodes answer")
	servers[2].Kill()
	nodes.run(t, exitNoQuorum, "doctor --samples 5")
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
