//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// hardLinked reports whether a file has a second name.
func hardLinked(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink > 1
}
