package terminal

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32   = syscall.NewLazyDLL("kernel32.dll")
	setMode    = kernel32.NewProc("SetConsoleMode")
	bufferInfo = kernel32.NewProc("GetConsoleScreenBufferInfo")
)

// IsTerminal reports whether the file is a console.
func IsTerminal(file *os.File) bool {
	var mode uint32
	return syscall.GetConsoleMode(syscall.Handle(file.Fd()), &mode) == nil
}

// takesLines reports whether the file is a console, which it sets to take control
// sequences.
func takesLines(file *os.File) bool {
	const virtualTerminal = 4
	var mode uint32
	if syscall.GetConsoleMode(syscall.Handle(file.Fd()), &mode) != nil {
		return false
	}
	ok, _, _ := setMode.Call(file.Fd(), uintptr(mode|virtualTerminal))
	return ok != 0
}

func foreground(*os.File) bool { return true }

// Width is how many columns a terminal has; 0 if the file is none.
func Width(file *os.File) int {
	var info struct {
		columns int16
		_       [10]int16
	}
	bufferInfo.Call(file.Fd(), uintptr(unsafe.Pointer(&info)))
	return int(info.columns)
}
