//go:build unix

package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
)

// severities returns the severity of each check's finding.
func severities(t *testing.T, n *Node) map[string]risk.Severity {
	t.Helper()
	found, err := n.Examine(context.Background(), risk.Exam{Name: "probe"})
	must(t, err)
	all := map[string]risk.Severity{}
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
		want         risk.Severity
	}{
		{0o600, 0o700, risk.Fine},
		{0o660, 0o770, risk.Advice},
		{0o666, 0o755, risk.Warning},
		{0o600, 0o777, risk.Danger},
		{0o600, 0o777 | os.ModeSticky, risk.Fine},
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
	if all := severities(t, n); all["rights"] != risk.Fine {
		t.Errorf("found is %v", all)
	}
	must(t, n.List(t.Context(), "", func(l node.Listing) { t.Errorf("%q is left", l.Name) }))
	wall := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), timekeeper{wall: time.Now})
	if all := severities(t, wall); all["clock"] != risk.Warning {
		t.Errorf("by the wall clock: %v", all)
	}
	os.Remove(wall.store.path)
	if all := severities(t, wall); all["rights"] != risk.Danger {
		t.Errorf("of a file that is gone: %v", all)
	}
}
