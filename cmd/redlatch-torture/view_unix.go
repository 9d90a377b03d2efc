//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/screen"
	"github.com/redlatch/redlatch/internal/test/chaos"
)

// view shows the progress of a run: on a terminal by lines that are updated,
// elsewhere by a line now and then.
type view struct {
	file   *os.File
	quiet  bool
	screen *screen.Screen // nil if the file is no terminal
	every  time.Duration

	mu   sync.Mutex    // guards what follows
	last time.Duration // when a line was written, where there is no terminal
}

func newView(file *os.File, length time.Duration, quiet bool) *view {
	return &view{file: file, quiet: quiet, screen: screen.Open(file), every: max(5*time.Second, length/20)}
}

// show shows a status.
func (v *view) show(s chaos.Status) {
	if v.quiet {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen == nil {
		if s.Elapsed-v.last >= v.every {
			v.last = s.Elapsed
			fmt.Fprintf(v.file, "redlatch-torture: %v of %v: %d acquisitions, %d writes, %d stale ones refused, %d faults\n",
				s.Elapsed.Round(time.Second), s.For, s.Acquisitions, s.Writes, s.Refused, s.Faults)
		}
		return
	}
	width := v.screen.Width()
	if width <= 0 {
		width = 80
	}
	v.screen.Draw(viewLines(s, width)...)
}

// clear removes the lines.
func (v *view) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.screen.Clear()
}

// holders are the leases on a name, in a line.
func holders(leases []chaos.Event) string {
	if len(leases) == 0 {
		return "–"
	}
	if e := leases[0]; len(leases) == 1 && e.Mode == chaos.Writer {
		return fmt.Sprintf("client %d, token %d", e.Client, e.Token)
	}
	var all []string
	for _, e := range leases {
		all = append(all, fmt.Sprintf("client %d (%s)", e.Client, e.Text()))
	}
	return strings.Join(all, ", ")
}

// viewLines are the lines: progress, counts, holders, and faults that are active.
func viewLines(s chaos.Status, width int) []string {
	room := min(max(width-36, 10), 50)
	lines := []string{
		fmt.Sprintf("%-9s [%s] %3.0fs of %v", s.Phase, screen.Bar(room, s.Elapsed.Seconds()/max(s.For.Seconds(), 0.001)), s.Elapsed.Seconds(), s.For),
		fmt.Sprintf("%d acquisitions, %d missed, %d writes, %d stale ones refused, %d lost, %d faults", s.Acquisitions, s.Missed, s.Writes, s.Refused, s.Lost, s.Faults),
	}
	for _, name := range s.Names {
		lines = append(lines, fmt.Sprintf("  %-10s %s", name, holders(s.Holders[name])))
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
