//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/chaos"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestTortureHoldsOnClusters has the leaders of a cluster killed and frozen. On a busy
// machine a run may have few faults, so it is repeated until a leader had one.
func TestTortureHoldsOnClusters(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	for kind, own := range map[chaos.ServerKind]string{chaos.Etcd: "full,compact", chaos.ZooKeeper: "expire"} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, seed := range []string{"1", "2", "3", "4", "5"} {
				keep := filepath.Join(t.TempDir(), "kept")
				code, stdout, stderr := command(t, "--for", "10s", "--seed", seed, "--clients", "4", "--names", "2", "-n", "1", "--kinds", string(kind),
					"--faults", "kill,freeze,client-clock,pause,client-kill,"+own, "--keep", keep)
				// A slow run that lacks a kind of lock has a verdict all the same.
				if code != 0 && code != exitFailed || !strings.Contains(stdout, "held: every promise was kept\n") {
					t.Fatalf("exit %d, %s%s", code, stdout, stderr)
				}
				text, err := os.ReadFile(keep)
				must(t, err)
				for line := range strings.Lines(string(text)) {
					var f chaos.Fault
					if json.Unmarshal([]byte(line), &f) == nil && strings.HasSuffix(f.Detail, ": the leader") {
						return
					}
				}
			}
			t.Error("nothing happened to a leader")
		})
	}
}
