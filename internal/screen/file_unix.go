//go:build unix

package screen

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// takesLines reports whether the file is a terminal.
func takesLines(file *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// foreground reports whether we are in the foreground: a shell's background jobs
// must not draw.
func foreground(file *os.File) bool {
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// width returns the number of columns, or 0 if it is not known.
func width(file *os.File) int {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
