package report

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/family"
)

// familyOf is a report on two rows of slots, ours and a peer's.
func familyOf(ours, theirs family.Seen) *Family {
	row := func(key string, rate []float64, isOurs bool, seen family.Seen) family.Row {
		r := family.Row{Peer: family.Peer{Key: key, Title: key, Nodes: 3, Situation: family.Slots, Ours: isOurs, Note: "n"}}
		r.Summary = family.Summary{Rate: rate[0], Rates: rate, HandOver: rate[0], HandOvers: rate[:1], Seen: seen}
		return r
	}
	return &Family{Took: time.Minute, Rows: []family.Row{row("redlatch", []float64{1000, 100, 10}, true, ours), row("peer", []float64{500, 300, 20}, false, theirs)}}
}

func TestPeersAreShownAsMultiplesOfRedlatchInTheSameRound(t *testing.T) {
	text := familyOf(family.Seen{Readers: 3}, family.Seen{Readers: 3}).Markdown()
	if !strings.Contains(text, "| peer | 3 | 500 | 0.50 | 500 | 2.00 | 20 to 500 |") {
		t.Fatal(text)
	}
}

func TestTooManyHoldersAreShownAndOursAreAnError(t *testing.T) {
	theirs := familyOf(family.Seen{Readers: 3}, family.Seen{Readers: 4})
	if err := theirs.Err(); err != nil || !strings.Contains(theirs.Markdown(), "**4**") {
		t.Fatalf("%v\n%s", err, theirs.Markdown())
	}
	if err := familyOf(family.Seen{Readers: 4}, family.Seen{}).Err(); err == nil {
		t.Fatal("four holders of redlatch's three slots are no error")
	}
	crossed := familyOf(family.Seen{}, family.Seen{})
	crossed.Crossings = []family.Crossings{{Peer: family.Peer{Key: "redlatch", Ours: true}, Holders: []int{2, 3}}}
	if err := crossed.Err(); err == nil {
		t.Fatal("three holders of redlatch's two slots are no error")
	}
}

func TestARowWithoutAResultIsAnError(t *testing.T) {
	f := familyOf(family.Seen{}, family.Seen{})
	f.Rows[1].Failed = "no such program"
	if err := f.Err(); err == nil || !strings.Contains(f.Markdown(), "not measured, no such program") {
		t.Fatalf("%v\n%s", err, f.Markdown())
	}
}
