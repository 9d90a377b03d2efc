package stats

import "testing"

// hold is a request by contender c, called at a, acquired at b, released at e.
func hold(c int32, a, b, e int64) Request {
	return Request{Contender: c, Got: true, Called: a, Acquired: b, Released: e}
}

func write(r Request) Request { r.Write = true; return r }

// exclusive is the history of a lock that one may hold at a time.
func exclusive(contenders int, requests ...Request) History {
	h := History{Contenders: contenders}
	for _, r := range requests {
		h.Requests = append(h.Requests, write(r))
	}
	return h
}

func TestOverlappingHoldsAreFound(t *testing.T) {
	list := []Request{
		hold(1, 0, 20, 30), hold(0, 0, 10, 20), hold(2, 0, 31, 40),
		{Contender: 0, Called: 5, Acquired: 50}, // waited without success, and held nothing
	}
	if s := exclusive(3, list...).Seen(); s != (Seen{Writers: 1}) {
		t.Fatalf("a clean history was called overlapping: %+v", s)
	}
	s := exclusive(3, append(list, hold(2, 0, 29, 29))...).Seen()
	if s.Broken != 1 || s.Writers != 2 || s.First != "contender 1 had the lock for 1ns more when contender 2 got it" {
		t.Fatalf("got %+v; want the one overlap of 1 and 2", s)
	}
	// One long hold over several short ones: each of them is an overlap, the
	// second too, though the first short one had ended before it.
	if s := exclusive(3, hold(0, 0, 0, 100), hold(1, 0, 10, 20), hold(2, 0, 30, 40)).Seen(); s.Broken != 2 {
		t.Fatalf("got %+v; want two overlaps", s)
	}
}

func TestTheMostHoldersAtAMomentAreCounted(t *testing.T) {
	// Two at a time: the third begins when the first ends.
	h := History{Slots: 2, Requests: []Request{hold(2, 0, 20, 30), hold(0, 0, 10, 20), hold(1, 0, 15, 25)}}
	if s := h.Seen(); s != (Seen{Readers: 2}) {
		t.Fatalf("got %+v; want two holders, which is allowed", s)
	}
	h.Requests = append(h.Requests, hold(3, 0, 24, 26))
	if s := h.Seen(); s.Readers != 3 || s.Broken != 1 {
		t.Fatalf("got %+v; want three holders, which is one too many for two slots", s)
	}
	h.Requests = append(h.Requests, Request{Contender: 4, Called: 0, Acquired: 100})
	if s := h.Seen(); s.Readers != 3 {
		t.Fatalf("got %+v; a contender that waited in vain held nothing", s)
	}
	if h.Slots = 3; h.Seen().Broken != 0 {
		t.Fatalf("got %+v; three holders of three slots are allowed", h.Seen())
	}
}

func TestAReaderBesideAWriterIsSeen(t *testing.T) {
	clean := []Request{hold(0, 0, 0, 10), hold(1, 0, 5, 10), write(hold(2, 0, 10, 20)), hold(0, 0, 20, 30)}
	if s := (History{Requests: clean}).Seen(); s != (Seen{Readers: 2, Writers: 1}) {
		t.Fatalf("got %+v; want nothing wrong", s)
	}
	for name, c := range map[string]struct {
		more Request
		want Seen
	}{
		"a reader comes to a writer": {hold(3, 0, 15, 16), Seen{Readers: 2, Writers: 1, Broken: 1}},
		"a writer comes to readers":  {write(hold(3, 0, 6, 7)), Seen{Readers: 2, Writers: 1, Broken: 1}},
		"two writers":                {write(hold(3, 0, 15, 16)), Seen{Readers: 2, Writers: 2, Broken: 1}},
	} {
		s := History{Requests: append(clean[:len(clean):len(clean)], c.more)}.Seen()
		if s.First == "" {
			t.Errorf("%s: not described", name)
		}
		if s.First = ""; s != c.want {
			t.Errorf("%s: got %+v; want %+v", name, s, c.want)
		}
	}
}

func TestHandOversAreToAnotherContender(t *testing.T) {
	h := History{Contenders: 2, Requests: []Request{hold(0, 0, 10, 20), hold(0, 20, 22, 30), hold(1, 0, 37, 40)}}
	if got := h.HandOvers(); len(got) != 1 || got[0] != 7 {
		t.Fatalf("got %v; want one, of 7", got)
	}
	if h.Acquisitions() != 3 {
		t.Fatalf("got %d acquisitions; want 3", h.Acquisitions())
	}
}

func TestAHandOverIsPrecededByAnother(t *testing.T) {
	h := History{Requests: []Request{
		hold(0, 0, 0, 10),   // the first
		hold(1, 0, 2, 30),   // another, beside it
		hold(0, 10, 11, 20), // again, and nobody came between
		hold(0, 20, 21, 30), // and again
		hold(2, 0, 31, 40),  // another
		hold(0, 30, 41, 50), // it came after that
	}}
	if n := len(h.HandOvers()); n != 3 {
		t.Fatalf("got %d; want 3 of 6", n)
	}
}

func TestWaitersThatWereNotServedCount(t *testing.T) {
	h := exclusive(2, hold(0, 0, 10, 20), Request{Contender: 1, Called: 0, Acquired: 1000})
	if s := Summarize(h.Waits(true)); s.Max != 1000 || s.Count != 2 {
		t.Fatalf("got %+v; want the wait in vain to be the longest", s)
	}
	if j := Jain(h.Shares()); j != 0.5 {
		t.Fatalf("got a fairness of %v; want 0.5, since one of two got nothing", j)
	}
}

func TestARoundCountsWhatWasAcquiredInIt(t *testing.T) {
	h := History{Requests: []Request{hold(0, 0, 5, 6), hold(0, 6, 10, 25), hold(0, 25, 31, 32),
		{Contender: 1, Called: 0, Acquired: 40}, {Contender: 2, Called: 35, Acquired: 40}}}
	part := h.Between(10, 30)
	if len(part.Requests) != 2 || part.Acquisitions() != 1 {
		t.Fatalf("got %+v; want the second hold, and the wait in vain that began before the end", part)
	}
	if len(h.Requests) != 5 {
		t.Fatal("the whole history lost what is not in its part")
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	if r := Ratio([]float64{500, 300, 20}, []float64{1000, 100, 10}); r != 2 {
		t.Fatalf("got %v; want the median of 0.5, 3 and 2", r)
	}
	if r := Ratio([]float64{1}, []float64{0}); r != 0 {
		t.Fatalf("got %v of nothing", r)
	}
}
