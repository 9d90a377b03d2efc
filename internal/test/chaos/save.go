//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// Save writes the history into a folder, for closer inspection: a line of JSON
// for each event, fault and accepted step, and the verdict.
func (r *Result) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	h := r.History
	return errors.Join(
		saveLines(dir, "events.jsonl", h.Events), saveLines(dir, "faults.jsonl", h.Faults),
		saveLines(dir, "writes.jsonl", h.Rows), saveLines(dir, "verdict.json", []Summary{r.Summary()}))
}

func saveLines[T any](dir, name string, list []T) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	for _, x := range list {
		err = errors.Join(err, enc.Encode(x))
	}
	return errors.Join(err, f.Close())
}

// Summary is a result in one line of JSON.
type Summary struct {
	Event    string   `json:"event"`
	Held     bool     `json:"held"`
	Headline string   `json:"headline"`
	Seed     uint64   `json:"seed,string"`
	Seconds  float64  `json:"seconds"`
	Fenced   bool     `json:"fenced"`
	Ran      []string `json:"ran"`    // the kinds of faults that were possible
	Struck   []string `json:"struck"` // those of them that were injected
	LeftOut  []Left   `json:"left_out"`
	Never    string   `json:"never,omitempty"` // what was to happen and did not
	*Verdict
}

// Summary returns the summary.
func (r *Result) Summary() Summary {
	s := Summary{Event: "verdict", Held: r.Verdict.Held(), Headline: r.Headline(), Seed: r.Seed, Fenced: r.History.Fenced,
		Seconds: float64((r.Ended-r.Began)/1e6) / 1e3, LeftOut: r.LeftOut, Never: r.Never(), Verdict: r.Verdict}
	for _, f := range r.Ran {
		s.Ran = append(s.Ran, f.Name)
	}
	s.Struck = r.Struck()
	if s.LeftOut == nil {
		s.LeftOut = []Left{} // [] in JSON, not null
	}
	return s
}

// Struck returns the kinds of faults that were injected, in order.
func (r *Result) Struck() []string {
	kinds := []string{}
	for _, f := range r.History.Faults {
		if !slices.Contains(kinds, f.Family) {
			kinds = append(kinds, f.Family)
		}
	}
	slices.Sort(kinds)
	return kinds
}
