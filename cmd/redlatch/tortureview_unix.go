//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/chaos"
)

// tortureView shows how a run stands: on a terminal by lines that are brought
// up to date, elsewhere by a line now and then.
type tortureView struct {
	say    *reporter
	screen *screen
	every  time.Duration

	mu    sync.Mutex
	last  time.Duration // when something was said, where there is no terminal
	lines int           // on the terminal
}

func newTortureView(say *reporter, length time.Duration) *tortureView {
	v := &tortureView{say: say, every: max(5*time.Second, length/20)}
	if file, ok := say.w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		v.screen = openScreen(file)
	}
	return v
}

// show is told how the run stands.
func (v *tortureView) show(s chaos.Status) {
	if v.say.quiet || v.say.format == "json" {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen == nil {
		if s.Elapsed-v.last >= v.every {
			v.last = s.Elapsed
			fmt.Fprintf(v.say.w, "redlatch: %v of %v: %d acquisitions, %d writes, %d stale ones refused, %d faults\n",
				s.Elapsed.Round(time.Second), s.For, s.Acquisitions, s.Writes, s.Refused, s.Faults)
		}
		return
	}
	if !v.screen.ours() {
		return
	}
	width := v.screen.width()
	if width <= 0 {
		width = 80
	}
	lines := tortureLines(s, width)
	v.screen.write(over(v.lines, lines, width))
	v.lines = len(lines)
}

// clear takes the lines away.
func (v *tortureView) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen != nil && v.lines > 0 && v.screen.ours() {
		v.screen.write(over(v.lines, nil, 80))
	}
	v.lines = 0
}

// over writes lines in the place of those that were written before.
func over(before int, lines []string, width int) string {
	var b strings.Builder
	if before > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", before)
	}
	b.WriteString("\r")
	for _, line := range lines {
		if r := []rune(line); len(r) >= width {
			line = string(r[:max(width-1, 0)])
		}
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// tortureLines is the view: progress, counts, who holds what, which faults last.
func tortureLines(s chaos.Status, width int) []string {
	room := min(max(width-36, 10), 50)
	lines := []string{
		fmt.Sprintf("%-9s [%s] %3.0fs of %v", s.Phase, bar(room, s.Elapsed.Seconds()/max(s.For.Seconds(), 0.001)), s.Elapsed.Seconds(), s.For),
		fmt.Sprintf("%d acquisitions, %d missed, %d writes, %d stale ones refused, %d lost, %d faults", s.Acquisitions, s.Missed, s.Writes, s.Refused, s.Lost, s.Faults),
	}
	for _, name := range s.Names {
		holder := "–"
		if e, ok := s.Holders[name]; ok {
			holder = fmt.Sprintf("client %d, token %d", e.Client, e.Token)
		}
		lines = append(lines, fmt.Sprintf("  %-10s %s", name, holder))
	}
	for i, f := range s.Active {
		if i == 6 {
			lines = append(lines, fmt.Sprintf("  and %d more", len(s.Active)-i))
			break
		}
		where := fmt.Sprintf("node %d", f.Node)
		if f.Node == 0 {
			where = fmt.Sprintf("client %d", f.Client)
		}
		lines = append(lines, fmt.Sprintf("  %-10s %s: %s", where, f.Family, f.Detail))
	}
	return lines
}
