//go:build unix

package textfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestEverybodyMayReadTheFile: the collector runs as another user than a job
// whose umask keeps files private.
func TestEverybodyMayReadTheFile(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "x.prom")
	must(t, Write(path, "text\n"))
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
