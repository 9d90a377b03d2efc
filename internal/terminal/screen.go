// Package terminal writes to a terminal: a line that is redrawn in place, a progress
// bar, text in colour.
package terminal

import (
	"os"
	"unicode/utf8"
)

// Screen is a terminal on which a line is redrawn in place. A nil Screen draws
// nothing. One goroutine may use it at a time.
type Screen struct {
	// Faint draws the line faint, unless NO_COLOR is set.
	Faint bool

	file  *os.File
	drawn bool // there is a line
}

// Open returns nil if the file is no terminal, or one that cannot redraw.
func Open(file *os.File) *Screen {
	if os.Getenv("TERM") == "dumb" || !takesLines(file) {
		return nil
	}
	return &Screen{file: file}
}

// Draw puts a line in the place of the one drawn before. A background job draws
// nothing.
func (s *Screen) Draw(line string) {
	if s == nil || !foreground(s.file) {
		return
	}
	s.file.WriteString(redraw(line, Width(s.file), s.Faint && os.Getenv("NO_COLOR") == ""))
	s.drawn = line != ""
}

// Clear removes the line.
func (s *Screen) Clear() {
	if s != nil && s.drawn {
		s.Draw("")
	}
}

// redraw is what puts a line in the place of another. A line that is too long is
// cut: one that wrapped could not be redrawn.
func redraw(line string, width int, faint bool) string {
	const clearLine = "\r\x1b[K"
	if width > 1 && utf8.RuneCountInString(line) >= width {
		line = string([]rune(line)[:width-2]) + "…"
	}
	if faint && line != "" {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	return clearLine + line
}
