package terminal

import (
	"strings"
	"testing"
	"time"
)

const wiped = "\r\x1b[K"

func TestLineFitsTheTerminal(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		faint bool
		want  string
	}{
		{"short", 8, false, "short"},
		{"0123456789", 8, false, "012345…"},
		{"ÄÖÜäöü89", 8, false, "ÄÖÜäöü…"},
		{"0123456789", 0, true, "\x1b[2m0123456789\x1b[0m"},
		{"", 8, true, ""},
	} {
		if got := redraw(c.line, c.width, c.faint); got != wiped+c.want {
			t.Errorf("%q in %d columns: %q", c.line, c.width, got)
		}
	}
}

func TestTimeLeftGoesByThePaceSoFar(t *testing.T) {
	// 30 of 90 took a minute: the other 60 will take two.
	p := &Progress{whole: 90, done: 30}
	if line := p.line(time.Minute, "x"); !strings.Contains(line, "2m0s left  x") || !strings.Contains(line, "[##########....................]  33 %") {
		t.Error(line)
	}
	// More than the whole is the whole.
	p.done = 100
	if line := p.line(time.Minute, "x"); !strings.Contains(line, "100 %  0s left") {
		t.Error(line)
	}
}
