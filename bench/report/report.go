// Package report makes of results what people read: tables, plots, and a check
// of the goals; and a file of all numbers for programs.
package report

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/system"
)

// Report is a run.
type Report struct {
	Machine    Machine             `json:"machine"`
	Settings   cell.Settings       `json:"settings"`
	Took       string              `json:"took"`
	RoundTrips []measure.RoundTrip `json:"raw_round_trips"`
	Goals      []Goal              `json:"goals"`
	Results    []measure.Result    `json:"results"`
}

// Command returns the command that measures a cell alone, in the bench's
// folder.
func Command(id string, quick bool) string {
	if quick {
		return "go run ./cmd/bench -quick -cell " + id
	}
	return "go run ./cmd/bench -cell " + id
}

// Write writes README.md, results.json and the plots into a folder.
func (r *Report) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	numbers, err := json.MarshalIndent(r.withCommands(), "", "  ")
	if err != nil {
		return err
	}
	files := map[string]string{
		"README.md":    r.Markdown(true),
		"results.json": string(numbers) + "\n",
	}
	for _, p := range r.plots() {
		files[p.file] = p.svg
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withCommands is the report with the command of each cell beside it.
func (r *Report) withCommands() any {
	type cellResult struct {
		Command string `json:"command"`
		measure.Result
	}
	list := make([]cellResult, len(r.Results))
	for i, x := range r.Results {
		list[i] = cellResult{Command(x.ID, r.Settings.Quick), x}
	}
	type plain Report
	return struct {
		plain
		Results []cellResult `json:"results"`
	}{plain(*r), list}
}

// find returns the result of a cell, if it was measured and is valid.
func (r *Report) find(c cell.Cell) *measure.Result {
	for i := range r.Results {
		if r.Results[i].Cell == c && r.Results[i].Failed == "" {
			return &r.Results[i]
		}
	}
	return nil
}

// of returns the results of a kind, in the order of the run.
func (r *Report) of(kind cell.Kind) []measure.Result {
	var list []measure.Result
	for _, x := range r.Results {
		if x.Kind == kind {
			list = append(list, x)
		}
	}
	return list
}

// title returns what a contender is called in tables.
func title(key string) string {
	if s, err := system.Find(key); err == nil {
		return s.Title
	}
	return key
}
