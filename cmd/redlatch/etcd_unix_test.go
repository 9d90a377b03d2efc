//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestRunsOnEtcdTakeTurns has runs contend for a lock on etcd, and on a quorum of etcd
// and two Redis servers.
func TestRunsOnEtcdTakeTurns(t *testing.T) {
	t.Parallel()
	etcd := "etcd://" + servertest.OwnEtcd(t).Addr()
	for name, nodes := range map[string]string{
		"alone":             etcd + "/alone",
		"beside two others": etcd + "/mixed," + strings.Join(servertest.Addresses(servertest.Redis(t, 2)), ","),
	} {
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
			code, stdout, stderr = command(t, "run", "--once", "2026-11-17", "--nodes", nodes, "nightly", "--", "true")
			if code != 0 {
				t.Errorf("run --once: exit %d, %s%s", code, stdout, stderr)
			}
			code, stdout, stderr = command(t, "show", "--nodes", nodes, "nightly")
			if code != 0 || !strings.Contains(stdout, "2026-11-17") {
				t.Errorf("show: exit %d, %s%s", code, stdout, stderr)
			}
			code, stdout, stderr = command(t, "doctor", "--nodes", nodes)
			if !strings.Contains(stdout, "suggested: --ttl") {
				t.Errorf("doctor: exit %d, %s%s", code, stdout, stderr)
			}
		})
	}
}
