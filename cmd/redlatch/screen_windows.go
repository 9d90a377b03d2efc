package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// screen is a console that lines can be written to.
type screen struct{ file *os.File }

// openScreen returns nil if the file is no console, or one that does not take
// control sequences.
func openScreen(file *os.File) *screen {
	var mode uint32
	handle := windows.Handle(file.Fd())
	if windows.GetConsoleMode(handle, &mode) != nil ||
		windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return nil
	}
	return &screen{file}
}

func (s *screen) ours() bool { return true }

func (s *screen) width() int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(s.file.Fd()), &info) != nil {
		return 0
	}
	return int(info.Size.X)
}

func (s *screen) write(text string) { s.file.WriteString(text) }
