//go:build unix

package main

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

func TestWatchPrintsAnOutageOnceAndGoesOn(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 3)
	nodes := strings.Join(servertest.Addresses(servers), ",")
	cmd := exec.Command("redlatch", "watch", "--nodes", nodes, "job")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	next := func(pattern string) {
		t.Helper()
		if !lines.Scan() || !regexp.MustCompile(pattern).MatchString(lines.Text()) {
			t.Fatalf("it wrote %q, want %s", lines.Text(), pattern)
		}
	}
	next(`^\S+  free$`)
	for _, s := range servers[1:] {
		s.Freeze()
	}
	next(`^\S+  unknown: .*no quorum \(2 of 3 needed\)`)
	for _, s := range servers[1:] {
		s.Thaw()
	}
	next(`^\S+  free$`)
	handleOf(t, nodes, "job", "--ttl", "25s")
	next(`^\S+  held by \S+, token [0-9]{20}$`)
}
