package screen

import (
	"strings"
	"testing"
	"time"
)

const wiped = "\r\x1b[K"

func TestLineFitsTheTerminal(t *testing.T) {
	if got := redraw(1, []string{"0123456789"}, 8, false); got != wiped+"012345…" {
		t.Errorf("in 8 columns: %q", got)
	}
	if got := redraw(0, []string{"0123456789"}, 0, true); got != wiped+"\x1b[2m0123456789\x1b[0m" {
		t.Errorf("faint, in an unknown width: %q", got)
	}
	if got := redraw(0, []string{"short", "0123456789", "ÄÖÜäöü89"}, 8, false); got != wiped+"short\n\x1b[K012345…\n\x1b[KÄÖÜäöü…" {
		t.Errorf("several lines in 8 columns: %q", got)
	}
}

func TestLinesAreRedrawnInPlace(t *testing.T) {
	for _, c := range []struct {
		before int
		lines  []string
		want   string
	}{
		{0, []string{"a", "b"}, wiped + "a\n\x1b[Kb"},
		{2, []string{"c", "d"}, "\x1b[1A" + wiped + "c\n\x1b[Kd"},
		{3, []string{"e"}, "\x1b[2A" + wiped + "e\x1b[J"},
		{2, nil, "\x1b[1A" + wiped + "\x1b[J"},
		{1, nil, wiped},
	} {
		if got := redraw(c.before, c.lines, 80, false); got != c.want {
			t.Errorf("%q over %d: %q, want %q", c.lines, c.before, got, c.want)
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
