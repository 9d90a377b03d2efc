package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
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
		refused(t, path, "must be allowed")
	}
}
