//go:build unix

package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// On Windows links need a permission, files have no modes, and an open file
// cannot be removed.

func TestOneFileByTwoPathsIsOneNode(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "locks.db")
	link := filepath.Join(dir, "link.db")
	a := mustOpen(t, real, systemTime())
	must(t, os.Symlink(real, link))
	b := mustOpen(t, link, systemTime())
	other := mustOpen(t, filepath.Join(dir, "other.db"), systemTime())

	ctx := context.Background()
	idA, _, _ := a.Identity(ctx)
	idB, _, _ := b.Identity(ctx)
	idOther, _, _ := other.Identity(ctx)
	if idA == "" || idA != idB {
		t.Errorf("one file is %q by one path and %q by another", idA, idB)
	}
	if idA == idOther {
		t.Errorf("two files are both %q", idA)
	}
	do(t, a, request(node.OpAcquire, "name", "one"))
	want(t, b, request(node.OpAcquire, "name", "two"), node.Held)
}

func TestTheFileIsForThisUserAlone(t *testing.T) {
	state := filepath.Join(t.TempDir(), "new")
	t.Setenv("REDLATCH_STATE_DIR", state)
	dir := filepath.Join(state, "redlatch")
	n := mustOpen(t, filepath.Join(dir, "locks.db"), systemTime())
	do(t, n, request(node.OpAcquire, "name", "one"))
	for path, want := range map[string]os.FileMode{
		dir: 0o700, n.store.path: 0o600, n.store.path + "-wal": 0o600, n.store.path + "-shm": 0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has the mode %v, want %v", path, got, want)
		}
	}
}

func TestFolderThatIsMissingIsNotCreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "mounted")
	refused(t, filepath.Join(dir, "locks.db"), "there is no folder "+dir+": create it, or correct the path")
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was created: %v", err)
	}
}

func TestAFileThatWasReplacedIsNotUsedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	old := mustOpen(t, path, systemTime())
	do(t, old, request(node.OpAcquire, "name", "one"))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		must(t, os.Remove(path+suffix))
	}
	for _, what := range []string{"removed", "replaced"} {
		if what == "replaced" {
			mustOpen(t, path, systemTime())
		}
		fails(t, old, request(node.OpExtend, "name", "one"), "removed or replaced")
	}
}

// TestAFileWithTwoNamesIsRefused has a hard link be made before the file is opened,
// and while it is in use.
func TestAFileWithTwoNamesIsRefused(t *testing.T) {
	path, link := filepath.Join(t.TempDir(), "locks.db"), filepath.Join(t.TempDir(), "link.db")
	mustOpen(t, path, systemTime()).Close() // the tables are in the file, and not in its log
	n := mustOpen(t, path, systemTime())
	do(t, n, request(node.OpAcquire, "name", "one"))
	must(t, os.Link(path, link))
	for _, p := range []string{path, link} {
		refused(t, p, "hard link")
	}
	fails(t, n, request(node.OpExtend, "name", "one"), "hard link")
	must(t, os.Remove(link))
	want(t, n, request(node.OpExtend, "name", "one"), node.Granted)
}
