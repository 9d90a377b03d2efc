package family

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/bench/stats"
)

// got is a request by contender c, called at a, acquired at b, released at e.
func got(c int32, write bool, a, b, e int64) Request {
	return Request{Hold: stats.Hold{Contender: c, Got: true, Called: a, Acquired: b, Released: e}, Write: write}
}

func TestTheMostHoldersAtAMomentAreCounted(t *testing.T) {
	// Two at a time: the third begins when the first ends.
	h := History{got(2, false, 0, 20, 30), got(0, false, 0, 10, 20), got(1, false, 0, 15, 25)}
	if s := h.Seen(); s != (Seen{Readers: 2}) || s.Breaks(2) {
		t.Fatalf("got %+v; want two holders, which is allowed", s)
	}
	h = append(h, got(3, false, 0, 19, 19), got(3, false, 0, 24, 26))
	if s := h.Seen(); s.Readers != 3 || !s.Breaks(2) || s.Breaks(3) {
		t.Fatalf("got %+v; want three holders, which is one too many for two slots", s)
	}
	h = append(h, Request{Hold: stats.Hold{Contender: 4, Called: 0, Acquired: 100}})
	if s := h.Seen(); s.Readers != 3 {
		t.Fatalf("got %+v; who waited in vain held nothing", s)
	}
}

func TestAReaderBesideAWriterIsSeen(t *testing.T) {
	clean := History{got(0, false, 0, 0, 10), got(1, false, 0, 5, 10), got(2, true, 0, 10, 20), got(0, false, 0, 20, 30)}
	if s := clean.Seen(); s != (Seen{Readers: 2, Writers: 1}) || s.Breaks(0) {
		t.Fatalf("got %+v; want nothing wrong", s)
	}
	for name, c := range map[string]struct {
		more Request
		want Seen
	}{
		"a reader comes to a writer": {got(3, false, 0, 15, 16), Seen{Readers: 2, Writers: 1, Mixed: 1}},
		"a writer comes to readers":  {got(3, true, 0, 6, 7), Seen{Readers: 2, Writers: 1, Mixed: 1}},
		"two writers":                {got(3, true, 0, 15, 16), Seen{Readers: 2, Writers: 2}},
	} {
		h := append(append(History{}, clean...), c.more)
		if s := h.Seen(); s != c.want || !s.Breaks(0) {
			t.Errorf("%s: got %+v; want %+v", name, s, c.want)
		}
	}
}

func TestAHandOverIsPrecededByAnother(t *testing.T) {
	h := History{
		got(0, false, 0, 0, 10),   // the first
		got(1, false, 0, 2, 30),   // another, beside it
		got(0, false, 10, 11, 20), // again, and nobody came between
		got(0, false, 20, 21, 30), // and again
		got(2, false, 0, 31, 40),  // another
		got(0, false, 30, 41, 50), // it came after that
	}
	if n := h.HandOvers(); n != 4 {
		t.Fatalf("got %d; want 4 of 6", n)
	}
}

func TestARoundCountsWhatWasAcquiredInIt(t *testing.T) {
	h := History{got(0, false, 0, 5, 6), got(0, false, 6, 10, 25), got(0, false, 25, 31, 32),
		{Hold: stats.Hold{Contender: 1, Called: 0, Acquired: 40}}, {Hold: stats.Hold{Contender: 2, Called: 35, Acquired: 40}}}
	part := h.Between(10, 30)
	if len(part) != 2 || part.Acquisitions() != 1 {
		t.Fatalf("got %+v; want the second hold, and the wait in vain that began before the end", part)
	}
}

func TestTheSummaryIsOfAllRounds(t *testing.T) {
	// A hundred waits of 1 to 100 ns in each round, by two contenders in turns,
	// and a writer that waited in vain.
	var h History
	for i := int64(1); i <= 100; i++ {
		h = append(h, got(int32(i%2), false, i*1000, i*1000+i, i*1000+500))
	}
	h = append(h, Request{Hold: stats.Hold{Contender: 0, Called: 0, Acquired: 777}, Write: true})
	round := Round{History: h, Contenders: 2, Length: time.Second, Sent: 300, ClientCPU: time.Second, ServerCPU: 2 * time.Second}
	slow, slower := round, round
	slow.Length, slower.Length = 2*time.Second, 4*time.Second
	slower.Errors, slower.Error = 3, "why"
	s := Sum([]Round{round, slower, slow})
	if s.Rate != 50 || len(s.Rates) != 3 || s.HandOver != 50 {
		t.Errorf("rate %v of %v, hand-overs %v; want the median of the rounds, 50", s.Rate, s.Rates, s.HandOver)
	}
	if s.Waits != (stats.Summary{Count: 300, Median: 50, P99: 99, Max: 100}) {
		t.Errorf("waits %+v", s.Waits)
	}
	if s.WriterWaits.Count != 3 || s.WriterWaits.P99 != 777 {
		t.Errorf("writers' waits %+v", s.WriterWaits)
	}
	if s.Commands != 3 || s.PerHandOver != 3 || s.ClientCPU != 10*time.Millisecond || s.ServerCPU != 20*time.Millisecond {
		t.Errorf("costs %v, %v, %v, %v", s.Commands, s.PerHandOver, s.ClientCPU, s.ServerCPU)
	}
	if s.Jain != 1 || s.Seen.Readers != 1 || s.Errors != 3 || s.Error != "why" {
		t.Errorf("%+v", s)
	}
	if empty := Sum([]Round{{Contenders: 2, Length: time.Second}}); empty.Rate != 0 || empty.Commands != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}
