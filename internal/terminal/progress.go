package terminal

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Bar draws which part of the whole is done, room characters wide.
func Bar(room int, done float64) string {
	full := int(float64(room) * min(1, max(0, done)))
	return strings.Repeat("#", full) + strings.Repeat(".", room-full)
}

// Progress shows how far a run of many steps is, and how long the rest will
// take: in one line on a terminal, elsewhere a line a step.
type Progress struct {
	out    *os.File
	screen *Screen // nil if there is no terminal
	whole  float64
	began  time.Time

	mu   sync.Mutex // guards what follows
	done float64
}

// NewProgress returns the progress of a run whose steps have the sizes whole in
// all.
func NewProgress(out *os.File, whole float64) *Progress {
	return &Progress{out: out, screen: Open(out), whole: whole, began: time.Now()}
}

// Show says that size more is done, and which step the run is at.
func (p *Progress) Show(size float64, step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += size
	line := p.line(time.Since(p.began), step)
	if p.screen == nil {
		fmt.Fprintln(p.out, line)
		return
	}
	p.screen.Draw(line)
}

// End removes the line.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.screen.Clear()
}

// line estimates what is left by the pace so far.
func (p *Progress) line(gone time.Duration, step string) string {
	part := min(p.done/max(p.whole, 1e-9), 1)
	left := ""
	if part > 0.02 {
		left = fmt.Sprintf("  %v left", time.Duration(float64(gone)*(1-part)/part).Round(time.Second))
	}
	return fmt.Sprintf("[%s] %3.0f %%%s  %s", Bar(30, part), 100*part, left, step)
}
