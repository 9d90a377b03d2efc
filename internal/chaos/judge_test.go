//go:build unix

package chaos_test

import (
	"slices"
	"testing"

	"github.com/redlatch/redlatch/internal/chaos"
)

// story makes a history of one name, "job", with explicit times.
type story struct {
	chaos.History
	seq int
}

func newStory() *story {
	return &story{History: chaos.History{Fenced: true, Clients: 1, Live: []int{1}, Counters: map[string]int64{}}}
}

// lease adds a lease that was asked for, acquired and given up at the given
// moments; one that is given up at its deadline was never released. It returns
// its number.
func (s *story) lease(token uint64, asked, got, deadline, released int64) int {
	s.seq++
	e := chaos.Event{Client: 1 + s.seq%3, Life: 1, Seq: s.seq, Name: "job", Token: token}
	s.add(e, chaos.Ask, asked, 0)
	s.add(e, chaos.Got, got, deadline)
	if released < deadline {
		s.add(e, chaos.Release, released, 0)
		s.add(e, chaos.Released, released+1, 0)
	}
	return s.seq
}

func (s *story) add(e chaos.Event, kind chaos.Kind, at, deadline int64) {
	e.Kind, e.At, e.Deadline = kind, at, deadline
	s.Events = append(s.Events, e)
}

// fault adds a fault beyond the assumptions.
func (s *story) fault(from, to int64) {
	s.Faults = append(s.Faults, chaos.Fault{Family: "clock-jump", Beyond: true, Node: 2, Detail: "forward",
		Span: chaos.Span{From: from, To: to}, Breaks: []chaos.Span{{From: from, To: from}}})
}

func (s *story) write(token uint64, client int, was, is int64) {
	s.Rows = append(s.Rows, chaos.Row{Name: "job", Token: token, Client: client, Was: was, Is: is})
	s.Counters["job"] = is
}

// rules returns the rules that the findings are about, each once.
func rules(findings []chaos.Finding) []chaos.Rule {
	var all []chaos.Rule
	for _, f := range findings {
		if !slices.Contains(all, f.Rule) {
			all = append(all, f.Rule)
		}
	}
	slices.Sort(all)
	return all
}

func TestJudgeFindsEveryOffence(t *testing.T) {
	for _, c := range []struct {
		what    string
		tell    func(s *story)
		want    []chaos.Rule // violations
		excused []chaos.Rule
	}{
		{what: "two leases, one after the other", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 50)
			s.lease(2, 20, 51, 150, 150)
			s.lease(3, 60, 151, 300, 200)
		}},
		{what: "a lease that is asked for early and given late", tell: func(s *story) {
			s.lease(5, 0, 200, 300, 250)
			s.lease(3, 0, 10, 100, 50)
		}},
		{what: "two leases at once", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 100)
			s.lease(2, 20, 99, 150, 140)
		}, want: []chaos.Rule{chaos.Order, chaos.Overlap}},
		{what: "two leases at once, after a clock was set forward", tell: func(s *story) {
			s.fault(30, 40)
			s.lease(1, 0, 10, 100, 100)
			s.lease(2, 20, 60, 150, 140)
		}, excused: []chaos.Rule{chaos.Overlap}},
		{what: "two leases at once, before a clock was set forward", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 100)
			s.lease(2, 20, 60, 150, 140)
			s.fault(61, 70)
		}, want: []chaos.Rule{chaos.Order, chaos.Overlap}},
		{what: "two leases at once, long after a clock was set forward", tell: func(s *story) {
			s.fault(30, 40)
			s.lease(1, 50, 60, 100, 100)
			s.lease(2, 50, 80, 150, 140)
		}, want: []chaos.Rule{chaos.Order, chaos.Overlap}},
		{what: "a lease that was extended, and another before its new deadline", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 200)
			s.Events = s.Events[:2]
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1}
			s.add(e, chaos.Extend, 80, 0)
			s.add(e, chaos.Extended, 81, 180)
			s.lease(2, 90, 120, 300, 250)
		}, want: []chaos.Rule{chaos.Order, chaos.Overlap}},
		{what: "a token that goes back", tell: func(s *story) {
			s.lease(2, 0, 10, 100, 50)
			s.lease(1, 60, 70, 150, 140)
		}, want: []chaos.Rule{chaos.Order, chaos.TokenOrder}},
		{what: "the same token twice", tell: func(s *story) {
			s.lease(2, 0, 10, 100, 50)
			s.lease(2, 60, 70, 150, 140)
		}, want: []chaos.Rule{chaos.Order, chaos.TokenOrder}},
		{what: "a token that goes back after many", tell: func(s *story) {
			for i := range int64(50) {
				s.lease(uint64(10+i), 100*i, 100*i+1, 100*i+90, 100*i+50)
			}
			s.lease(10, 6000, 6001, 6100, 6050)
		}, want: []chaos.Rule{chaos.Order, chaos.TokenOrder}},
		{what: "two leases at once, after more than porcupine is shown in one go", tell: func(s *story) {
			for i := range int64(9000) {
				s.lease(uint64(10+i), 100*i, 100*i+1, 100*i+90, 100*i+50)
			}
			s.lease(9999, 899_950, 899_961, 899_999, 899_990)
			s.lease(99_999, 899_950, 899_970, 899_999, 899_980)
		}, want: []chaos.Rule{chaos.Order, chaos.Overlap}},
		{what: "a token that goes back after a fence was evicted", tell: func(s *story) {
			s.Faults = append(s.Faults, chaos.Fault{Family: "evict", Beyond: true, Node: 1, Span: chaos.Span{From: 52, To: 55}, Forgets: true})
			s.lease(2, 0, 10, 100, 50)
			s.lease(1, 60, 70, 150, 140)
		}, excused: []chaos.Rule{chaos.TokenOrder}},
		{what: "a token that goes back between leases that were asked for at once", tell: func(s *story) {
			// Neither began after the other: no rule covers the two, but there
			// is also no order in which both would be right.
			s.lease(2, 0, 10, 100, 50)
			s.lease(1, 5, 60, 150, 140)
		}, want: []chaos.Rule{chaos.Order}},
		{what: "an extension after another lease was given", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 200)
			s.Events = s.Events[:2]
			s.lease(2, 90, 120, 300, 150)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1}
			s.add(e, chaos.Extend, 160, 0)
			s.add(e, chaos.Extended, 161, 0)
		}, want: []chaos.Rule{chaos.Creation}},
		{what: "a stale write that was accepted", tell: func(s *story) {
			s.write(1, 1, 0, 1)
			s.write(3, 2, 1, 2)
			s.write(2, 1, 2, 3)
		}, want: []chaos.Rule{chaos.StaleWrite}},
		{what: "an update that was lost", tell: func(s *story) {
			s.write(1, 1, 0, 1)
			s.write(2, 2, 0, 1)
		}, want: []chaos.Rule{chaos.LostUpdate}},
		{what: "a counter that is not what was written last", tell: func(s *story) {
			s.write(1, 1, 0, 1)
			s.Counters["job"] = 7
		}, want: []chaos.Rule{chaos.LostUpdate}},
		{what: "a write that was confirmed and is not there", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 100)
			s.Events = append(s.Events, chaos.Event{Kind: chaos.Wrote, At: 20, Client: 2, Life: 1, Seq: 1, Name: "job", Token: 1, To: 1})
		}, want: []chaos.Rule{chaos.LostUpdate}},
		{what: "a lock that is left on a server", tell: func(s *story) { s.Left = map[int][]string{3: {"job"}} }, want: []chaos.Rule{chaos.Ghost}},
		{what: "a client that gets no lock any more", tell: func(s *story) { s.Clients = 2 }, want: []chaos.Rule{chaos.Liveness}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			v := chaos.Judge(&s.History)
			if got := rules(v.Violations); !slices.Equal(got, c.want) {
				t.Errorf("violations %q, not %q: %v", got, c.want, v.Violations)
			}
			if got := rules(v.Excused); !slices.Equal(got, c.excused) {
				t.Errorf("excused %q, not %q: %v", got, c.excused, v.Excused)
			}
			if v.Held() != (len(c.want) == 0) {
				t.Errorf("held %t", v.Held())
			}
		})
	}
}

func TestStaleWritesToAnUnfencedResourceAreCorruption(t *testing.T) {
	s := newStory()
	s.Fenced = false
	s.write(1, 1, 0, 1)
	s.write(3, 2, 1, 2)
	s.write(2, 1, 1, 2)
	v := chaos.Judge(&s.History)
	if got := rules(v.Corruption); !v.Held() || !slices.Equal(got, []chaos.Rule{chaos.LostUpdate, chaos.StaleWrite}) {
		t.Errorf("held %t, corruption %q", v.Held(), got)
	}
}
