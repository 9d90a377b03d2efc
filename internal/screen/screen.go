// Package screen writes to a terminal: lines that are redrawn in place, a progress
// bar, text in colour.
package screen

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// Screen is a terminal on which lines are redrawn in place. A nil Screen draws
// nothing. One goroutine may use it at a time.
type Screen struct {
	// Faint has the lines drawn faint, unless NO_COLOR is set.
	Faint bool

	file  *os.File
	drawn int // how many lines are there
}

// Open returns nil if the file is no terminal, or one that cannot redraw.
func Open(file *os.File) *Screen {
	if os.Getenv("TERM") == "dumb" || !takesLines(file) {
		return nil
	}
	return &Screen{file: file}
}

// Width returns the number of columns, or 0 if it is not known.
func (s *Screen) Width() int { return width(s.file) }

// Draw puts lines in the place of those drawn before. A background job draws
// nothing.
func (s *Screen) Draw(lines ...string) {
	if s == nil || !foreground(s.file) {
		return
	}
	s.file.WriteString(redraw(s.drawn, lines, s.Width(), s.Faint && os.Getenv("NO_COLOR") == ""))
	s.drawn = len(lines)
}

// Clear removes the lines.
func (s *Screen) Clear() {
	if s == nil || s.drawn == 0 {
		return
	}
	s.Draw()
	s.drawn = 0
}

// redraw is what puts lines in the place of so many others. The cursor stays
// behind the last one. A line that is too long is cut: one that wrapped could
// not be redrawn.
func redraw(before int, lines []string, width int, faint bool) string {
	const clearLine, clearBelow = "\x1b[K", "\x1b[J"
	var b strings.Builder
	if before > 1 {
		fmt.Fprintf(&b, "\x1b[%dA", before-1)
	}
	b.WriteString("\r" + clearLine)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\n" + clearLine)
		}
		if width > 1 && utf8.RuneCountInString(line) >= width {
			line = string([]rune(line)[:width-2]) + "…"
		}
		if faint {
			line = "\x1b[2m" + line + "\x1b[0m"
		}
		b.WriteString(line)
	}
	if before > 1 && before > len(lines) {
		b.WriteString(clearBelow)
	}
	return b.String()
}
