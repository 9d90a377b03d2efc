package stats

import (
	"strings"
	"testing"
)

// hold is a request by contender c, called at a, acquired at b, released at e.
func hold(c int32, a, b, e int64) Request {
	return Request{Contender: c, Got: true, Called: a, Acquired: b, Released: e}
}

func TestOverlappingHoldsAreFound(t *testing.T) {
	list := []Request{
		hold(1, 0, 20, 30), hold(0, 0, 10, 20), hold(2, 0, 31, 40),
		{Contender: 0, Called: 5, Acquired: 50}, // waited without success, and held nothing
	}
	if faults := (History{Requests: list}).Overlaps(); len(faults) != 0 {
		t.Fatalf("a clean history was called overlapping: %v", faults)
	}
	if faults := (History{Requests: append(list, hold(2, 0, 29, 30))}).Overlaps(); len(faults) != 1 || !strings.Contains(faults[0].Text, "contender 1") {
		t.Fatalf("got %v; want the one overlap of 1 and 2", faults)
	}
	// One long hold over several short ones: each of them is an overlap, the
	// second too, though the first short one had ended before it.
	long := History{Requests: []Request{hold(0, 0, 0, 100), hold(1, 0, 10, 20), hold(2, 0, 30, 40)}}
	if faults := long.Overlaps(); len(faults) != 2 {
		t.Fatalf("got %v; want two overlaps", faults)
	}
}

func TestAHandOverIsPrecededByAnother(t *testing.T) {
	h := History{Contenders: 3, Requests: []Request{
		hold(0, 0, 0, 10),   // the first
		hold(1, 0, 2, 30),   // another, beside it
		hold(0, 10, 11, 20), // again, and nobody came between
		hold(0, 20, 21, 30), // and again
		hold(2, 0, 31, 40),  // another, after 1
		hold(0, 30, 41, 50), // it came after that
	}}
	if got := h.HandOvers(); len(got) != 3 || got[1] != 1 || h.Acquisitions() != 6 {
		t.Fatalf("got %v of %d; want 3 of 6", got, h.Acquisitions())
	}
}

func TestWaitersThatWereNotServedCount(t *testing.T) {
	h := History{Contenders: 2, Requests: []Request{hold(0, 0, 10, 20), {Contender: 1, Called: 0, Acquired: 1000}}}
	if s := Summarize(h.Waits()); s.Max != 1000 || s.Count != 2 {
		t.Fatalf("got %+v; want the wait in vain to be the longest", s)
	}
	if j := Jain(h.Shares()); j != 0.5 {
		t.Fatalf("got a fairness of %v; want 0.5, since one of two got nothing", j)
	}
}

func TestARoundCountsWhatWasAcquiredInIt(t *testing.T) {
	h := History{Requests: []Request{hold(0, 0, 5, 6), hold(0, 6, 10, 25), hold(0, 25, 31, 32),
		{Contender: 1, Called: 0, Acquired: 40}, {Contender: 2, Called: 35, Acquired: 40}, {Contender: 2, Called: 0, Acquired: 9}}}
	part := h.Between(10, 30)
	if len(part.Requests) != 2 || part.Acquisitions() != 1 {
		t.Fatalf("got %+v; want the second hold, and the wait in vain that began before the end", part)
	}
	if len(h.Requests) != 6 {
		t.Fatal("the whole history lost what is not in its part")
	}
}

func TestTheOvertakenAskedEarlierAndWaitLonger(t *testing.T) {
	h := History{Requests: []Request{
		hold(0, 10, 50, 60), // 1 and 2 passed it
		hold(1, 11, 20, 30), hold(2, 12, 30, 40),
		hold(3, 13, 60, 70),                      // in its turn
		{Contender: 4, Called: 14, Acquired: 18}, // gave up, before anybody passed it
		{Contender: 5, Called: 1, Acquired: 99},  // asked too early to count, and passed nobody
	}}
	if most := h.Overtaken(10); most != 2 {
		t.Errorf("overtaken by %d, want 2", most)
	}
	if most := h.Overtaken(0); most != 4 {
		t.Errorf("the one that waits in vain was overtaken by %d, want 4", most)
	}
}
