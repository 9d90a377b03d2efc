// Package progress shows on a terminal how far a run is.
package progress

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Bar is a line that is drawn over and over. Where there is no terminal, each
// part that is done is a line of its own instead.
type Bar struct {
	out      *os.File
	terminal bool
	began    time.Time

	mu    sync.Mutex
	steps int
	done  int
}

// New returns a bar for a run of so many steps.
func New(out *os.File, steps int) *Bar {
	info, err := out.Stat()
	return &Bar{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, steps: steps, began: time.Now()}
}

// Step says that n steps are done, and of what the last was.
func (b *Bar) Step(n int, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	if b.terminal {
		fmt.Fprintf(b.out, "\r\x1b[K%s", b.line(what))
	}
}

// Say writes a line that stays.
func (b *Bar) Say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terminal {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	fmt.Fprintf(b.out, "%3d %% %s\n", 100*b.done/max(b.steps, 1), fmt.Sprintf(format, args...))
}

func (b *Bar) line(what string) string {
	const width = 30
	part := min(float64(b.done)/float64(max(b.steps, 1)), 1)
	full := int(part * width)
	s := fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*part)
	if gone := time.Since(b.began); part > 0.05 {
		s += fmt.Sprintf(", %v to go", time.Duration(float64(gone)*(1-part)/part).Round(time.Second))
	}
	if len(what) > 40 {
		what = what[:40]
	}
	return s + "  " + what
}
