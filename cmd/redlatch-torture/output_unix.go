//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/screen"
	"github.com/redlatch/redlatch/internal/test/chaos"
)

// listFaults lists the kinds of faults.
func (f *flags) listFaults(out io.Writer) error {
	type fault struct {
		Name   string `json:"name"`
		Beyond bool   `json:"beyond"`
		About  string `json:"about"`
	}
	for _, family := range chaos.Families() {
		if f.output == "json" {
			if err := writeJSON(out, fault{family.Name, family.Beyond, family.About}); err != nil {
				return err
			}
			continue
		}
		kind := "within"
		if family.Beyond {
			kind = "beyond"
		}
		if _, err := fmt.Fprintf(out, "%-14s %s  %s\n", family.Name, kind, family.About); err != nil {
			return err
		}
	}
	return nil
}

// writeVerdict writes what the run showed.
func (f *flags) writeVerdict(out io.Writer, r *chaos.Result) error {
	if f.output == "json" {
		return writeJSON(out, r.Summary())
	}
	v := r.Verdict
	var b strings.Builder
	colour := "32"
	if !v.Held() || len(v.Corruption) > 0 {
		colour = "31"
	}
	fmt.Fprintf(&b, "%s\n", screen.Paint(out, colour, r.Headline()))
	fmt.Fprintf(&b, "seed %d: %d faults of %d kinds, out of %d, in %v; %d acquisitions, %d writes, %d reads, %d stale steps refused, %d of them reads; %d leases lost\n",
		r.Seed, v.Faults, len(r.Struck()), len(r.Ran), f.time, v.Acquisitions, v.Writes, v.Reads, v.Refused, v.RefusedReads, v.Lost)
	fmt.Fprintf(&b, "acquired as writer %d times, %d of them downgraded; as reader %d times, up to %d at once; as slot %d times, up to %d at once; %d kept after their release\n",
		v.Writers, v.Downgrades, v.Readers, v.MostReaders, v.Slots, v.MostSlots, v.Kept)
	fmt.Fprintf(&b, "waited for a lock %v in the median, %v at the 99th percentile\n", v.Median.Round(10*time.Microsecond), v.P99.Round(10*time.Microsecond))
	if never := r.Never(); never != "" {
		fmt.Fprintf(&b, "never happened: %s\n", never)
	}
	some(&b, "violation", v.Violations)
	some(&b, "corruption", v.Corruption)
	some(&b, "outside the assumptions", v.Excused)
	for _, l := range r.LeftOut {
		why, _, _ := strings.Cut(l.Why, "\n")
		fmt.Fprintf(&b, "not run: %s: %s\n", l.Family, why)
	}
	if f.report != "" {
		fmt.Fprintf(&b, "the history is drawn in %s\n", f.report)
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}

// some writes the first few findings, and how many more there are.
func some(b *strings.Builder, what string, list []chaos.Finding) {
	const few = 5
	for i, f := range list {
		if i == few {
			fmt.Fprintf(b, "%s: and %d more\n", what, len(list)-few)
			return
		}
		fmt.Fprintf(b, "%s: %s: %s: %s", what, f.Rule, f.Name, f.Text)
		if f.Excuse != "" {
			fmt.Fprintf(b, " (%s)", f.Excuse)
		}
		b.WriteString("\n")
	}
}

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
