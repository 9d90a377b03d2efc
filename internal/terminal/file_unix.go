//go:build unix

package terminal

import (
	"os"
	"syscall"
	"unsafe"
)

// ioctl asks a terminal, and reports whether the file is one.
func ioctl(file *os.File, request uintptr, answer unsafe.Pointer) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(answer))
	return errno == 0
}

// window is the size of a terminal.
type window struct{ rows, columns, x, y uint16 }

// IsTerminal reports whether the file is a terminal.
func IsTerminal(file *os.File) bool {
	return ioctl(file, syscall.TIOCGWINSZ, unsafe.Pointer(&window{}))
}

// takesLines reports whether the file is a terminal.
func takesLines(file *os.File) bool { return IsTerminal(file) }

// foreground reports whether we are in the foreground: a shell's background jobs
// must not draw.
func foreground(file *os.File) bool {
	var group int32
	return ioctl(file, syscall.TIOCGPGRP, unsafe.Pointer(&group)) && int(group) == syscall.Getpgrp()
}

// Width is how many columns a terminal has; 0 if the file is none.
func Width(file *os.File) int {
	var size window
	ioctl(file, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	return int(size.columns)
}
