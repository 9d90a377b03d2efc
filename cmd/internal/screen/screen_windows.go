package screen

import (
	"os"

	"golang.org/x/sys/windows"
)

// Screen is a console that lines can be written to.
type Screen struct{ file *os.File }

// Open returns the screen of a file. It is nil if the file is no console, or one that does not take
// control sequences.
func Open(file *os.File) *Screen {
	var mode uint32
	handle := windows.Handle(file.Fd())
	if windows.GetConsoleMode(handle, &mode) != nil ||
		windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return nil
	}
	return &Screen{file}
}

// Ours reports whether we may write to the console.
func (s *Screen) Ours() bool { return true }

// Width returns the number of columns, or 0 if it is not known.
func (s *Screen) Width() int {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(s.file.Fd()), &info) != nil {
		return 0
	}
	return int(info.Size.X)
}

// Write writes a text.
func (s *Screen) Write(text string) { s.file.WriteString(text) }
