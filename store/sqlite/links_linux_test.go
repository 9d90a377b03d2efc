package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFileThatIsMountedByItselfIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	mustOpen(t, path, systemTime()).Close()
	if !mountPoint("/proc") { // every Linux has it
		t.Error("/proc is not seen as a mount point")
	}
	if mountPoint(path) {
		t.Error("a plain file is seen as a mount point")
	}
	t.Run("bind mount", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "locks.db")
		must(t, os.WriteFile(other, nil, 0o600))
		err := syscall.Mount(path, other, "", syscall.MS_BIND, "")
		if err == syscall.EPERM || err == syscall.EACCES {
			t.Skip("this user may not mount; the test above sees what the kernel says of a mount point")
		}
		must(t, err)
		t.Cleanup(func() { syscall.Unmount(other, syscall.MNT_DETACH) })
		link := filepath.Join(t.TempDir(), "link.db")
		must(t, os.Symlink(other, link))
		for _, p := range []string{other, link} {
			refused(t, p, "mount its folder")
		}
		mustOpen(t, path, systemTime()) // by the first path it can be used
	})
}
