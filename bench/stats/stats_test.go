package stats

import (
	"testing"
	"time"
)

func TestQuantilesOfAHundredAreItsMembers(t *testing.T) {
	var times []time.Duration
	for i := 100; i >= 1; i-- {
		times = append(times, time.Duration(i))
	}
	if s := Summarize(times); s != (Summary{Count: 100, Median: 50, P99: 99, Max: 100}) {
		t.Fatalf("got %+v", s)
	}
	if s := Summarize(nil); s != (Summary{}) {
		t.Fatalf("of nothing: got %+v", s)
	}
	if s := Summarize([]time.Duration{7}); s != (Summary{1, 7, 7, 7}) {
		t.Fatalf("of one: got %+v", s)
	}
}

func TestMedianOfAnEvenNumberLiesBetween(t *testing.T) {
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Fatalf("got %v", m)
	}
	if m := Median([]float64{9, 1, 3}); m != 3 {
		t.Fatalf("got %v", m)
	}
}

func TestJainIsOneForEqualSharesAndLeastForOneWinner(t *testing.T) {
	for _, c := range []struct {
		shares []int
		want   float64
	}{
		{[]int{5, 5, 5, 5}, 1}, {[]int{20, 0, 0, 0}, 0.25}, {[]int{3, 1}, 0.8}, {[]int{0, 0}, 0}, {nil, 0},
	} {
		if got := Jain(c.shares); got != c.want {
			t.Errorf("Jain(%v) = %v, want %v", c.shares, got, c.want)
		}
	}
}

// hold is a Hold by contender c, called at a, acquired at b, released at e.
func hold(c int32, a, b, e int64) Hold {
	return Hold{Contender: c, Got: true, Called: a, Acquired: b, Released: e}
}

func TestOverlappingHoldsAreFound(t *testing.T) {
	clean := History{Contenders: 3, Holds: []Hold{
		hold(1, 0, 20, 30), hold(0, 0, 10, 20), hold(2, 0, 31, 40),
		{Contender: 0, Called: 5, Acquired: 50}, // waited without success, and held nothing
	}}
	if o := clean.Overlaps(); len(o) != 0 {
		t.Fatalf("a clean history was called overlapping: %v", o)
	}
	bad := clean
	bad.Holds = append(bad.Holds, hold(2, 0, 29, 29))
	if o := bad.Overlaps(); len(o) != 1 || o[0].First.Contender != 1 || o[0].Second.Contender != 2 {
		t.Fatalf("got %v; want the one overlap of 1 and 2", o)
	}
	// One long hold over several short ones: each of them is an overlap, the
	// second too, though the first short one had ended before it.
	long := History{Contenders: 3, Holds: []Hold{hold(0, 0, 0, 100), hold(1, 0, 10, 20), hold(2, 0, 30, 40)}}
	if o := long.Overlaps(); len(o) != 2 {
		t.Fatalf("got %v; want two overlaps", o)
	}
}

func TestHandOversAreToAnotherContender(t *testing.T) {
	h := History{Contenders: 2, Holds: []Hold{hold(0, 0, 10, 20), hold(0, 20, 22, 30), hold(1, 0, 37, 40)}}
	if got := h.HandOvers(); len(got) != 1 || got[0] != 7 {
		t.Fatalf("got %v; want one, of 7", got)
	}
	if h.Acquisitions() != 3 {
		t.Fatalf("got %d acquisitions; want 3", h.Acquisitions())
	}
}

func TestWaitersThatWereNotServedCount(t *testing.T) {
	h := History{Contenders: 2, Holds: []Hold{hold(0, 0, 10, 20), {Contender: 1, Called: 0, Acquired: 1000}}}
	if s := Summarize(h.Waits()); s.Max != 1000 || s.Count != 2 {
		t.Fatalf("got %+v; want the wait in vain to be the longest", s)
	}
	if j := Jain(h.Shares()); j != 0.5 {
		t.Fatalf("got a fairness of %v; want 0.5, since one of two got nothing", j)
	}
}
