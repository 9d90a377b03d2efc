package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/measure"
	"github.com/redlatch/redlatch/bench/stats"
)

// sample is a report in which redlatch reaches its pair goals on 1 server, and
// breaks exclusion elsewhere.
func sample(ours time.Duration) *Report {
	pair := func(sys string, d time.Duration) measure.Result {
		c := cell.Cell{Kind: cell.Pair, Nodes: 1, System: sys}
		s := stats.Summary{Count: 1, Median: d, P99: 2 * d, Max: 3 * d}
		return measure.Result{ID: c.ID(), Cell: c, Pair: &measure.Pair{Times: s, Acquire: &s}}
	}
	contended := func(count int, commands float64) measure.Result {
		c := cell.Cell{Kind: cell.Contended, Count: count, Held: time.Millisecond, Nodes: 5, System: "redlatch"}
		return measure.Result{ID: c.ID(), Cell: c, Contended: &measure.Contended{
			HandOvers: 1, HandOversRate: 100, Jain: 0.9, PerHandOver: commands,
			Wait: stats.Summary{P99: time.Millisecond}, HandOver: stats.Summary{Median: time.Millisecond},
		}}
	}
	broken := contended(128, 1)
	broken.Failed = "EXCLUSION BROKEN 1 times"
	r := &Report{Settings: cell.Full(), Results: []measure.Result{
		pair("redlatch", ours), pair("redislock", 50*time.Microsecond), pair("floor-scripts", 40*time.Microsecond),
		contended(16, 15), contended(1000, 30), broken,
	}}
	r.Goals = r.CheckGoals()
	return r
}

func goal(t *testing.T, r *Report, contains string) Goal {
	t.Helper()
	for _, g := range r.Goals {
		if strings.Contains(g.Goal, contains) {
			return g
		}
	}
	t.Fatalf("no goal %q", contains)
	return Goal{}
}

func TestGoalsAreReachedMissedOrNotMeasured(t *testing.T) {
	for _, c := range []struct {
		ours    time.Duration
		reached bool
	}{{50 * time.Microsecond, true}, {51 * time.Microsecond, false}} {
		r := sample(c.ours)
		for _, name := range []string{"1 server: median beside the floor", "1 server: median below bsm/redislock"} {
			if g := goal(t, r, name); g.Reached == nil || *g.Reached != c.reached {
				t.Errorf("with %v: %+v", c.ours, g)
			}
		}
	}
	r := sample(time.Millisecond)
	if g := goal(t, r, "5 servers: median beside the floor"); g.Reached != nil {
		t.Errorf("not measured, and yet judged: %+v", g)
	}
	for _, name := range []string{"Jain's index", "at 1000 waiters beside 16, 1 ms held, 5 servers"} {
		if g := goal(t, r, name); g.Reached == nil || *g.Reached {
			t.Errorf("missed, and not said so: %+v", g)
		}
	}
	if !strings.Contains(r.GoalTable(), "**NO**") {
		t.Error("a missed goal does not stand out")
	}
}

func TestFailedCellsAreShownLoudly(t *testing.T) {
	text := sample(time.Millisecond).Markdown(false)
	for _, want := range []string{"## Failed cells", "**`contended/128/1ms/5/redlatch`: EXCLUSION BROKEN 1 times**", "| **FAILED** |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func TestTheFolderHasTablesNumbersAndPicturesThatParse(t *testing.T) {
	folder := t.TempDir()
	if err := sample(time.Millisecond).Write(folder); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(folder, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var numbers struct {
		Results []struct{ ID, Command string }
		Goals   []Goal
	}
	if err := json.Unmarshal(b, &numbers); err != nil {
		t.Fatal(err)
	}
	if len(numbers.Results) != 6 || len(numbers.Goals) == 0 || numbers.Results[0].Command != "go run ./cmd/bench -cell pair/1/redlatch" {
		t.Fatalf("%+v", numbers)
	}
	pictures, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil || len(pictures) < 4 {
		t.Fatalf("%v, %v", pictures, err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		if !strings.Contains(string(text), "("+filepath.Base(p)+")") {
			t.Errorf("README.md does not show %s", filepath.Base(p))
		}
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(f)
		for err == nil {
			_, err = d.Token()
		}
		f.Close()
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", filepath.Base(p), err)
		}
	}
}
