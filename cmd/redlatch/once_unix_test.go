//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnceThatTooFewNodesCanMarkSaysSo(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	dir := t.TempDir()
	started, end := filepath.Join(dir, "started"), filepath.Join(dir, "end")
	cmd, stderr := run(t, servers, "--json", "--ttl", "20s", "--once", "monday", "job", "--",
		"sh", "-c", `echo >"$0"; until test -e "$1"; do sleep 0.01; done`, started, end)
	appears(t, started, stderr)
	servers[0].Kill()
	servers[2].Kill()
	must(t, os.WriteFile(end, nil, 0o600))
	code := exitCode(t, cmd.Wait())
	if text := stderr.String(); code != exitLost || !strings.Contains(text, `"event":"unmarked","name":"job","once":"monday","ran":true,"exit":79`) ||
		!strings.Contains(text, "may run again") {
		t.Errorf("exit code %d, want %d; %s", code, exitLost, text)
	}
}
