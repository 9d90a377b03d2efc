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
			plan, err := choose([]string{p.Key}, c.CellID())
			if err != nil || len(plan) != 1 || len(plan[0].cells) != 1 || plan[0].cells[0].CellID() != c.CellID() {
				t.Errorf("%s %s: %v, %v", p.Key, c.CellID(), plan, err)
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
	if plan, err := choose(nil, "contended/16/1ms/5/.*"); err != nil || len(plan) != 1 || len(plan[0].cells) < 4 {
		t.Errorf("by an expression: %v, %v", plan, err)
	}
	if plan, err := choose(nil, ""); err != nil || len(plan) != 3 {
		t.Errorf("without a page: %d pages, %v; want those that have a file", len(plan), err)
	}
}

func TestIDsThatNameNoCellAreRefused(t *testing.T) {
	for _, id := range []string{"pair", "pair/x/redlatch", "pair/1/2/redlatch", "contended/16/1us/5/redlatch", "leases/1e9/1/redlatch", "other/1/redlatch", "pair/1/other", "("} {
		if plan, err := choose(nil, id); err == nil {
			t.Errorf("%q is %v", id, plan)
		}
	}
	for _, args := range [][]string{{"other"}, {"redis", "capacity"}} {
		if plan, err := choose(args, ""); err == nil {
			t.Errorf("%q is %v", args, plan)
		}
	}
}

func TestComparedContendersAreMeasuredInTurns(t *testing.T) {
	for _, b := range measure.Batches(redis.Cells()) {
		if b[0].ID == "pair" && len(b) < 5 {
			t.Errorf("only %d contenders in %s", len(b), b[0].CellID())
		}
		if strings.HasPrefix(b[0].ID, "contended") && len(b) < 8 {
			t.Errorf("only %d contenders in %s", len(b), b[0].CellID())
		}
	}
	for _, b := range measure.Batches(consensus.Cells()) {
		if len(b) < 2 || b[0].Rounds < 5 {
			t.Errorf("%d contenders and %d rounds of %s", len(b), b[0].Rounds, b[0].CellID())
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
