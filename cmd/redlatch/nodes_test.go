package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// names returns the nodes of a command line.
func names(t *testing.T, args ...string) []string {
	t.Helper()
	f := &nodeFlags{}
	cmd := &cobra.Command{Use: "test", RunE: func(*cobra.Command, []string) error { return nil }}
	f.register(cmd.Flags(), nil)
	must(t, cmd.ParseFlags(args))
	must(t, applySettings(cmd, &reporter{w: io.Discard}))
	nodes, err := f.open()
	must(t, err)
	defer closeAll(nodes)
	var names []string
	for _, n := range nodes {
		names = append(names, n.String())
	}
	return names
}

func TestNodesComeFromFlagsThenEnvironmentThenTheFile(t *testing.T) {
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	t.Setenv("REDLATCH_STATE_DIR", dir)
	t.Setenv(nodesVariable, "")
	t.Setenv(configVariable, "")
	t.Setenv("XDG_CONFIG_HOME", dir)

	got := names(t)
	if len(got) != 1 || !strings.Contains(got[0], dir) {
		t.Errorf("with nothing said the node is %q, not the file in %s", got, dir)
	}
	t.Setenv(nodesVariable, "redis://env:1, redis://env:2")
	if got, want := names(t), []string{"redis://env:1", "redis://env:2"}; !slices.Equal(got, want) {
		t.Errorf("from the environment: %q, want %q", got, want)
	}
	// Different kinds may be mixed, and keep their order.
	file := filepath.Join(dir, "more.db")
	got = names(t, "--nodes", "redis://a:1,sqlite:"+file, "--nodes", "redis+cluster://b:1+c:1")
	if len(got) != 3 || got[0] != "redis://a:1" || !strings.Contains(got[1], "more.db") || got[2] != "redis+cluster://b:1+c:1" {
		t.Errorf("from flags: %q", got)
	}
	got = names(t, "--nodes", "sqlite:"+file)
	if len(got) != 1 || !strings.Contains(got[0], "more.db") {
		t.Errorf("a file against REDLATCH_NODES: %q, want the file", got)
	}
}

func TestNodesAreClosedWhenOneCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	must(t, os.WriteFile(blocked, nil, 0o600))
	nodes, err := openNodes([]string{"sqlite:" + filepath.Join(dir, "a.db"), "redis://a:1", "sqlite:" + filepath.Join(blocked, "b.db")}, "")
	if err == nil {
		closeAll(nodes)
		t.Fatal("a file below a file was opened")
	}
	if end := outcomeOf(err); end.code != exitNoQuorum {
		t.Errorf("exit code %d (%v), want %d", end.code, err, exitNoQuorum)
	}
}

func TestAddressesThatAreNearlyRightAreAnsweredWithTheRightForm(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"ls", "--nodes", "localhost:6379"}, `address 1 of the nodes is "localhost:6379": it has no scheme; write redis://localhost:6379, or rediss://localhost:6379 with TLS`},
		{[]string{"ls", "--nodes", "redis://a,redis:6379"}, "must be redis://redis:6379"},
		{[]string{"ls", "--nodes", "redis://a redis://b"}, "separate addresses by a comma"},
		{[]string{"ls", "--nodes", "localhost:1 localhost:2"}, "separate addresses by a comma"},
		{[]string{"run", "--nodes", "redis://a", "redis://b", "job", "--", "true"}, "separate addresses by a comma"},
		{[]string{"lock", "--nodes", "redis://a", "redis://b", "job"}, "separate addresses by a comma"},
		{[]string{"init", "--nodes", "redis://a", "redis://b"}, "separate addresses by a comma"},
		{[]string{"ls", "--nodes", "/var/lib/locks.db"}, "redlatch help nodes"},
	} {
		var stderr strings.Builder
		say := &reporter{w: &stderr}
		root := newRoot(say)
		root.SetArgs(c.args)
		root.SetOut(io.Discard)
		end := outcomeOf(root.Execute())
		say.end(end)
		if end.code != exitUsage || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%q: exit %d, %swant %q", c.args, end.code, stderr.String(), c.says)
		}
	}
}

// TestHalfOfAPasswordIsNotShownAsAnAddress has a password with commas in it.
func TestHalfOfAPasswordIsNotShownAsAnAddress(t *testing.T) {
	_, err := openNodes(split("redis://u:sec,ret:12,x@host:6379"), "")
	if err == nil || strings.Contains(err.Error(), "ret") || strings.Contains(err.Error(), "sec") {
		t.Errorf("the error is: %v", err)
	}
}
