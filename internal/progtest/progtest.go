//go:build unix

// Package progtest runs a program several times at once, as separate processes,
// for tests of how the processes affect each other: package proctest, with
// locks in files besides.
package progtest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/proctest"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/redis/direct"
	"github.com/redlatch/redlatch/sqlite"
)

// patience is the time limit of Waiting: a machine under load needs it, a test
// that passes does not.
const patience = time.Minute

// Process is a program that was started.
type Process = proctest.Process

// Main is for TestMain: it runs the tests, or main in a process that Start has
// started.
func Main(m *testing.M, main func()) { proctest.Main(m, main) }

// Start starts the program under a name for the test's own log. It is killed
// when the test ends.
func Start(t testing.TB, name string, env []string, args ...string) *Process {
	t.Helper()
	return proctest.Start(t, name, env, args...)
}

// Quorum starts n Redis servers that are declared new, and returns an
// environment in which locks are on them.
func Quorum(t testing.TB, n int) ([]*redistest.Server, []string) {
	t.Helper()
	return proctest.Quorum(t, n)
}

// File returns an environment in which locks are in a file of the test's own.
func File(t testing.TB) []string {
	return []string{"REDLATCH_NODES=", "REDLATCH_STATE_DIR=" + t.TempDir()}
}

// Waiting waits until so many callers wait for a lock on a node of the
// environment, and returns that node's listing of it.
func Waiting(t testing.TB, env []string, name string, count int) node.Listing {
	t.Helper()
	all := nodes(t, env)
	for _, n := range all {
		defer n.Close()
	}
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var seen []int
		for _, n := range all {
			look, err := n.(node.Lister).Look(t.Context(), name)
			if err == nil && look.Waiting == count {
				return look
			}
			seen = append(seen, look.Waiting)
		}
		if time.Now().After(late) {
			t.Fatalf("%v wait for %q after %v, want %d on a node", seen, name, patience, count)
		}
	}
}

// nodes returns the nodes of an environment.
func nodes(t testing.TB, env []string) []redlatch.Node {
	t.Helper()
	var list, dir string
	for _, v := range env {
		switch key, value, _ := strings.Cut(v, "="); key {
		case "REDLATCH_NODES":
			list = value
		case "REDLATCH_STATE_DIR":
			dir = value
		}
	}
	if list != "" {
		nodes, err := direct.Nodes(strings.Split(list, ",")...)
		if err != nil {
			t.Fatal(err)
		}
		return nodes
	}
	n, err := sqlite.Open(filepath.Join(dir, "redlatch", "locks.db"))
	if err != nil {
		t.Fatal(err)
	}
	return []redlatch.Node{n}
}
