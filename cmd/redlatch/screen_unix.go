//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// screen is a terminal that lines can be written to.
type screen struct{ file *os.File }

// openScreen returns nil if the file is no terminal.
func openScreen(file *os.File) *screen {
	if _, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil
	}
	return &screen{file}
}

// ours reports whether we are in the foreground: a shell's background jobs have
// no business on the screen.
func (s *screen) ours() bool {
	group, err := unix.IoctlGetInt(int(s.file.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// width returns the number of columns, or 0 if it is not known.
func (s *screen) width() int {
	size, err := unix.IoctlGetWinsize(int(s.file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

func (s *screen) write(text string) { s.file.WriteString(text) }
