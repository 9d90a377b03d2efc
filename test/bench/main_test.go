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
	if plan, err := choose(nil, ""); err != nil || len(plan) != 4 {
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
