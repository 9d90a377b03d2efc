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
	f.register(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if err := applySettings(cmd, &reporter{w: io.Discard}); err != nil {
		t.Fatal(err)
	}
	nodes, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
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
	got = names(t, "--state", file)
	if len(got) != 1 || !strings.Contains(got[0], "more.db") {
		t.Errorf("--state against REDLATCH_NODES: %q, want the file", got)
	}
}

func TestNodesAreClosedWhenOneCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	nodes, err := openNodes([]string{"sqlite:" + filepath.Join(dir, "a.db"), "redis://a:1", "sqlite:" + filepath.Join(blocked, "b.db")})
	if err == nil {
		closeAll(nodes)
		t.Fatal("a file below a file was opened")
	}
	if end := outcomeOf(err); end.code != exitNoQuorum {
		t.Errorf("exit code %d (%v), want %d", end.code, err, exitNoQuorum)
	}
}
