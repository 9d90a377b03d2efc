//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Result is the result of a run.
type Result struct {
	Seed    uint64
	Began   int64
	History *History
	Verdict *Verdict
	Ran     []Family // the faults that are possible here
	LeftOut []string // those that are not, and why
}

// Save writes a line of JSON for each fault, event and accepted step, and one for
// the verdict.
func (r *Result) Save(w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	return errors.Join(
		saveAll(lines, r.History.Faults), saveAll(lines, r.History.Events),
		saveAll(lines, r.History.Rows), lines.Encode(r.Verdict))
}

func saveAll[T any](lines *json.Encoder, list []T) error {
	for _, x := range list {
		if err := lines.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

// Struck returns the kinds of faults that were injected, in order.
func (r *Result) Struck() (kinds []string) {
	for _, f := range r.History.Faults {
		kinds = append(kinds, f.Family)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// longEnough is how long a run must be for every mode to happen.
const longEnough = 20 * time.Second

// Never returns what a run was to do and did not, or too rarely, as a text; "" if
// it did all.
func (r *Result) Never() string {
	if r.History.Calm {
		return "" // it has writers alone, and every client had a lock
	}
	least := map[Count]int{Writers: 1, Readers: 1, Slots: 1, Downgrades: 1, Kept: 1}
	if c := r.History.Clients; c >= 2 && c >= 2*r.History.Names {
		least[MostReaders], least[MostSlots] = 2, 2 // clients are often at the same name
	}
	var all []string
	for _, c := range counts {
		if n := r.Verdict.Counts[c]; n < least[c] {
			all = append(all, fmt.Sprintf("%s (%d)", c, n))
		}
	}
	return strings.Join(all, ", ")
}

// Enough returns an error if something never happened, and the run was long
// enough for it: its verdict says less than it seems to.
func (r *Result) Enough() error {
	if never := r.Never(); never != "" && r.History.Healed-r.Began >= int64(longEnough) {
		return fmt.Errorf("the run is worth little: it had too few of: %s", never)
	}
	return nil
}

// headline is the verdict in a sentence.
func (r *Result) headline() string {
	v := r.Verdict
	switch {
	case !v.Held():
		return fmt.Sprintf("violated: %d violations", len(v.Violations))
	case !r.History.Fenced:
		return fmt.Sprintf("not fenced: %d stale writes, stale reads or lost updates", len(v.Corruption))
	}
	return "held: every promise was kept"
}

// String is the verdict, with what happened and the first few findings.
func (r *Result) String() string {
	v, b := r.Verdict, &strings.Builder{}
	fmt.Fprintf(b, "%s\nseed %d: %d faults of %d kinds, out of %d\n", r.headline(), r.Seed, len(r.History.Faults), len(r.Struck()), len(r.Ran))
	for _, c := range counts {
		fmt.Fprintf(b, "%s: %d\n", c, v.Counts[c])
	}
	if never := r.Never(); never != "" {
		fmt.Fprintf(b, "too few: %s\n", never)
	}
	some(b, "violation", v.Violations)
	some(b, "corruption", v.Corruption)
	some(b, "outside the assumptions", v.Excused)
	for _, left := range r.LeftOut {
		fmt.Fprintf(b, "not run: %s\n", left)
	}
	return b.String()
}

// some writes the first few findings, and how many more there are.
func some(b *strings.Builder, what string, list []Finding) {
	const few = 5
	for _, f := range list[:min(few, len(list))] {
		fmt.Fprintf(b, "%s: %s: %s: %s", what, f.Rule, f.Name, f.Text)
		if f.Excuse != "" {
			fmt.Fprintf(b, " (%s)", f.Excuse)
		}
		b.WriteString("\n")
	}
	if len(list) > few {
		fmt.Fprintf(b, "%s: and %d more\n", what, len(list)-few)
	}
}
