package screen

import (
	"os"

	"golang.org/x/sys/windows"
)

// takesLines reports whether the file is a console, and has it take control
// sequences.
func takesLines(file *os.File) bool {
	var mode uint32
	handle := windows.Handle(file.Fd())
	return windows.GetConsoleMode(handle, &mode) == nil &&
		windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

func foreground(*os.File) bool { return true }

// width returns the number of columns, or 0 if it is not known.
func width(file *os.File) int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(file.Fd()), &info) != nil {
		return 0
	}
	return int(info.Size.X)
}
