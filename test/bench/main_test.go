package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/test/bench/measure"
)

func TestEveryCellCanBeRunByItsID(t *testing.T) {
	for _, p := range pages {
		for _, c := range p.Cells() {
			_, cells, err := choose([]string{p.Key}, c.CellID())
			if err != nil || len(cells) != 1 || cells[0].CellID() != c.CellID() {
				t.Errorf("%s %s: %d cells, %v", p.Key, c.CellID(), len(cells), err)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range redis.Cells() {
		if seen[c.CellID()] {
			t.Errorf("%s is planned twice", c.CellID())
		}
		seen[c.CellID()] = true
	}
	if _, cells, err := choose(nil, "contended/16/1ms/5/.*"); err != nil || len(cells) < 4 {
		t.Errorf("by an expression: %d cells, %v", len(cells), err)
	}
}

func TestIDsThatNameNoCellAreRefused(t *testing.T) {
	for _, id := range []string{"pair", "pair/x/redlatch", "pair/1/2/redlatch", "contended/16/1us/5/redlatch", "leases/1e9/1/redlatch", "other/1/redlatch", "pair/1/other", "("} {
		if _, cells, err := choose(nil, id); err == nil {
			t.Errorf("%q is %v", id, cells)
		}
	}
	for _, args := range [][]string{{"other"}, {"redis", "family"}} {
		if p, _, err := choose(args, ""); err == nil {
			t.Errorf("%q is %s", args, p.Key)
		}
	}
}

func TestGoalsAreOfCellsThatAreMeasured(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range redis.Cells() {
		ids[c.CellID()] = true
	}
	for goal := range strings.Lines(strings.TrimSpace(goals)) {
		for _, word := range strings.Fields(goal) {
			if strings.Contains(word, "/") && !ids[word] {
				t.Errorf("no cell %s of %s", word, goal)
			}
		}
	}
	if text := redis.GoalTable(nil); strings.Count(text, "| – |") != strings.Count(strings.TrimSpace(goals), "\n")+1 {
		t.Errorf("goals of nothing:\n%s", text)
	}
}

func TestTheWholeBenchTakesNoLongerThan25Minutes(t *testing.T) {
	for _, p := range pages {
		var sum time.Duration
		for _, c := range p.Cells() {
			sum += c.Duration()
		}
		if sum > 25*time.Minute {
			t.Errorf("%s is planned to take %v", p.Key, sum)
		}
		t.Log(p.Key, sum)
	}
}

func TestComparedContendersAreMeasuredInTurns(t *testing.T) {
	for _, b := range measure.Batches(redis.Cells()) {
		if b[0].ID == "pair" && len(b) < 5 {
			t.Errorf("only %d contenders in %s", len(b), b[0].CellID())
		}
		if strings.HasPrefix(b[0].ID, "contended") && len(b) != 1 {
			t.Errorf("%d contenders at once in %s", len(b), b[0].CellID())
		}
	}
	for _, b := range measure.Batches(family.Cells()) {
		if len(b) < 2 {
			t.Errorf("only %d contenders in %s", len(b), b[0].CellID())
		}
	}
	for _, b := range measure.Batches(databases.Cells()) {
		for _, c := range b {
			if c.Server != b[0].Server {
				t.Errorf("%s and %s are compared", b[0].CellID(), c.CellID())
			}
		}
	}
}

func TestEveryColumnIsAFigure(t *testing.T) {
	for _, p := range pages {
		var results []*measure.Result
		for _, c := range p.Cells() {
			results = append(results, &measure.Result{Cell: c, Rates: []float64{1}, HandOverRates: []float64{1}})
		}
		text := p.Markdown(nil, time.Minute, results) // it panics on another
		for _, c := range p.Cells() {
			if !strings.Contains(text, "`"+c.CellID()+"` |\n") {
				t.Errorf("%s has no row of %s", p.Key, c.CellID())
			}
		}
	}
}
