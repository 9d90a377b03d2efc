//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
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
