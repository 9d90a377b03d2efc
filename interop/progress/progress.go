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
// step is a line of its own instead.
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

// Step says that one more step is done, and what it was.
func (b *Bar) Step(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	if b.terminal {
		fmt.Fprintf(b.out, "\r\x1b[K%s", b.line(what))
	} else {
		fmt.Fprintf(b.out, "%3d %% %s\n", 100*b.done/max(b.steps, 1), what)
	}
}

// End takes the line away.
func (b *Bar) End() {
	if b.terminal {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
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
