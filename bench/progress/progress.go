// Package progress shows on a terminal how far a run is and how long it will
// take yet.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Bar is a line that is drawn over and over. Where there is no terminal, each
// step is a line of its own instead.
type Bar struct {
	out      io.Writer
	terminal bool
	total    time.Duration // as planned
	began    time.Time

	mu        sync.Mutex
	done      time.Duration // of what is planned
	what      string
	step      time.Duration
	stepBegan time.Time
	stop      chan struct{}
	drawing   sync.WaitGroup
}

// New returns a bar for a run that is planned to take as long as total.
func New(out *os.File, total time.Duration) *Bar {
	info, err := out.Stat()
	b := &Bar{
		out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
		total: total, began: time.Now(), stop: make(chan struct{}),
	}
	if b.terminal {
		b.drawing.Go(b.draw)
	}
	return b
}

func (b *Bar) draw() {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-b.stop:
			fmt.Fprint(b.out, "\r\x1b[K")
			return
		case <-tick.C:
			b.mu.Lock()
			line := b.line(time.Now())
			b.mu.Unlock()
			fmt.Fprintf(b.out, "\r\x1b[K%s", line)
		}
	}
}

const width = 30

// line returns the bar. What is left is judged by how the plan was kept so
// far.
func (b *Bar) line(now time.Time) string {
	step := min(now.Sub(b.stepBegan), b.step)
	if b.what == "" {
		step = 0
	}
	done := b.done + step
	share := 1.0
	if b.total > 0 {
		share = min(float64(done)/float64(b.total), 1)
	}
	pace := 1.0
	if b.done > 0 {
		pace = float64(b.stepBegan.Sub(b.began)) / float64(b.done)
	}
	left := time.Duration(float64(b.total-done) * pace).Round(time.Second)
	full := int(share * width)
	return fmt.Sprintf("[%s%s] %3.0f %%  %v left  %s",
		strings.Repeat("█", full), strings.Repeat("░", width-full), share*100, max(left, 0), b.what)
}

// Begin says what is being measured, and how long that is planned to take.
func (b *Bar) Begin(what string, planned time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.step, b.stepBegan = what, planned, time.Now()
	if !b.terminal {
		fmt.Fprintln(b.out, b.line(b.stepBegan))
	}
}

// End says that it is done.
func (b *Bar) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += b.step
	b.what, b.stepBegan = "", time.Now()
}

// Close removes the bar.
func (b *Bar) Close() {
	close(b.stop)
	b.drawing.Wait()
}
