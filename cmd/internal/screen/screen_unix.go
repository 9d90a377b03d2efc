//go:build unix

package screen

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Screen is a terminal that lines can be written to.
type Screen struct{ file *os.File }

// Open returns the screen of a file. It is nil if the file is no terminal.
func Open(file *os.File) *Screen {
	if _, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil
	}
	return &Screen{file}
}

// Ours reports whether we are in the foreground. Background jobs of a shell
// should not write to the screen.
func (s *Screen) Ours() bool {
	group, err := unix.IoctlGetInt(int(s.file.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// Width returns the number of columns, or 0 if it is not known.
func (s *Screen) Width() int {
	size, err := unix.IoctlGetWinsize(int(s.file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// Write writes a text.
func (s *Screen) Write(text string) { s.file.WriteString(text) }
