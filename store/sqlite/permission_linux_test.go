package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestAFolderThatMayNotBeWrittenToIsExplained(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o500))
	if os.Getuid() == 0 {
		// Root may write everywhere, so this thread runs as nobody.
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		must(t, syscall.Setfsuid(nobody))
		defer syscall.Setfsuid(0)
	}
	for _, path := range []string{filepath.Join(dir, "locks.db"), filepath.Join(dir, "sub", "locks.db")} {
		n, err := Open(path, nil)
		if err == nil {
			n.Close()
			t.Fatalf("%s was opened", path)
		}
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "must be allowed") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}
