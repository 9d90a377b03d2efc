//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestRunsOnZooKeeperTakeTurns has runs contend for a lock on an ensemble of one, and on
// a quorum of one and two servers of Redis, each counted as one node.
func TestRunsOnZooKeeperTakeTurns(t *testing.T) {
	t.Parallel()
	zookeeper := servertest.OwnZooKeeper(t, 1)[0].DSN()
	redis := strings.Join(servertest.Addresses(servertest.Redis(t, 2)), ",")
	for name, nodes := range map[string]string{"alone": zookeeper + "/alone", "beside Redis": zookeeper + "/mixed," + redis} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, "init", "--assume-fresh", "--yes", "--nodes", nodes)
			if code != 0 {
				t.Fatalf("init: exit %d, %s%s", code, stdout, stderr)
			}
			c := &crowd{t: t, path: buildCommand(t), nodes: []string{"--nodes", nodes}, dir: t.TempDir()}
			release := c.hold()
			const runs = 5
			for i := range runs {
				c.start(i)
			}
			code, stdout, stderr = command(t, "ls", "--nodes", nodes)
			if code != 0 || !strings.Contains(stdout, "job") {
				t.Errorf("ls: exit %d, %s%s", code, stdout, stderr)
			}
			release()
			c.finish(runs)
			code, stdout, stderr = command(t, "doctor", "--nodes", nodes)
			if code != 0 && code != exitEndangered || !strings.Contains(stdout, "is a server of its own") || !strings.Contains(stdout, "suggested: --ttl") {
				t.Errorf("doctor: exit %d, %s%s", code, stdout, stderr)
			}
			ran := filepath.Join(t.TempDir(), "ran")
			for range 2 {
				if code, stdout, stderr = command(t, "run", "--nodes", nodes, "--once", "today", "nightly", "--", "sh", "-c", "echo x >>"+ran); code != 0 {
					t.Errorf("run --once: exit %d, %s%s", code, stdout, stderr)
				}
			}
			if text, err := os.ReadFile(ran); string(text) != "x\n" {
				t.Errorf("it ran %q times, %v", text, err)
			}
		})
	}
}
