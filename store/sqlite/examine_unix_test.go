//go:build unix

package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// severities returns the severity of each check's finding.
func severities(t *testing.T, n *Node) map[string]node.Severity {
	t.Helper()
	found, err := n.Examine(context.Background(), node.Exam{Name: "probe"})
	must(t, err)
	all := map[string]node.Severity{}
	for _, f := range found {
		all[f.Check] = f.Severity
	}
	return all
}

func TestExaminationOfAFileFindsWhoElseMayWriteToIt(t *testing.T) {
	dir := t.TempDir()
	n := mustOpen(t, filepath.Join(dir, "locks.db"), systemTime())
	for _, c := range []struct {
		file, folder os.FileMode
		want         node.Severity
	}{
		{0o600, 0o700, node.Fine},
		{0o660, 0o770, node.Advice},
		{0o666, 0o755, node.Warning},
		{0o600, 0o777, node.Danger},
		{0o600, 0o777 | os.ModeSticky, node.Fine},
	} {
		must(t, os.Chmod(n.store.path, c.file))
		must(t, os.Chmod(dir, c.folder))
		if got := severities(t, n)["permissions"]; got != c.want {
			t.Errorf("file %v, folder %v: %v, want %v", c.file, c.folder, got, c.want)
		}
	}
}

func TestExaminationOfAFileTriesALockAndLeavesNone(t *testing.T) {
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), systemTime())
	if all := severities(t, n); all["rights"] != node.Fine {
		t.Errorf("found is %v", all)
	}
	must(t, n.List(t.Context(), "", func(l node.Listing) { t.Errorf("%q is left", l.Name) }))
	wall := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), timekeeper{wall: time.Now})
	if all := severities(t, wall); all["clock"] != node.Warning {
		t.Errorf("by the wall clock: %v", all)
	}
	os.Remove(wall.store.path)
	if all := severities(t, wall); all["rights"] != node.Danger {
		t.Errorf("of a file that is gone: %v", all)
	}
}
