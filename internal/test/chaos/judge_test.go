//go:build unix

package chaos_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/chaos"
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
	return s.share(chaos.Share{}, token, asked, got, deadline, released)
}

// share is lease for any kind of lease.
func (s *story) share(share chaos.Share, token uint64, asked, got, deadline, released int64) int {
	s.seq++
	e := chaos.Event{Client: 1 + s.seq%3, Life: 1, Seq: s.seq, Name: "job", Share: share, Token: token}
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

// downgrade adds a downgrade of the lease with a number, with its confirmation
// unless that is 0.
func (s *story) downgrade(n int, token uint64, at, confirmed int64) {
	e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: token}
	s.add(e, chaos.Downgrade, at, 0)
	if confirmed == 0 {
		e.Err, confirmed = "no quorum", at+1
	}
	s.add(e, chaos.Downgraded, confirmed, 0)
}

// keep has the lock of the lease with a number stay taken for a while.
func (s *story) keep(n int, d int64) {
	for i := range s.Events {
		if e := &s.Events[i]; e.Seq == n && e.Kind == chaos.Got {
			e.Keep = d
		}
	}
}

// refused adds a step of the lease with a number that the resource refused.
func (s *story) refused(n int, token uint64, at int64) {
	s.add(chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: token}, chaos.Refused, at, 0)
}

// fault adds a fault beyond the assumptions.
func (s *story) fault(from, to int64) {
	s.Faults = append(s.Faults, chaos.Fault{Family: "clock-jump", Beyond: true, Node: 2, Detail: "forward",
		Span: chaos.Span{From: from, To: to}, Breaks: []chaos.Span{{From: from, To: from}}})
}

// breaks has an operator break the leases up to a token.
func (s *story) breaks(token uint64, from, to int64) {
	s.Faults = append(s.Faults, chaos.Fault{Family: "break", Broken: []chaos.Broken{{Name: "job", Token: token, Sure: true, Span: chaos.Span{From: from, To: to}}}})
}

func (s *story) write(token uint64, client int, was, is int64) {
	s.Rows = append(s.Rows, chaos.Row{Name: "job", Token: token, Client: client, Was: was, Is: is})
	s.Counters["job"] = is
}

// step adds a step that writes nothing.
func (s *story) step(step chaos.Step, token uint64, client int, value int64) {
	s.Rows = append(s.Rows, chaos.Row{Name: "job", Step: step, Token: token, Client: client, Was: value, Is: value})
}

// reader and slot are kinds of leases.
var reader = chaos.Share{Mode: chaos.Reader}

func slot(n int) chaos.Share {
	return chaos.Share{Mode: chaos.Slot, Slots: 3, Slot: uint8(n)}
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

// doctored is a history, and what the judge must find in it.
type doctored struct {
	what    string
	tell    func(s *story)
	want    []chaos.Rule // violations
	excused []chaos.Rule
}

func judge(t *testing.T, stories []doctored) {
	for _, c := range stories {
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

func TestJudgeFindsEveryOffence(t *testing.T) {
	judge(t, []doctored{
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
		}, want: []chaos.Rule{chaos.Overlap}},
		{what: "two leases at once, after a clock was set forward", tell: func(s *story) {
			s.fault(30, 40)
			s.lease(1, 0, 10, 100, 100)
			s.lease(2, 20, 60, 150, 140)
		}, excused: []chaos.Rule{chaos.Overlap}},
		{what: "two leases at once, before a clock was set forward", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 100)
			s.lease(2, 20, 60, 150, 140)
			s.fault(61, 70)
		}, want: []chaos.Rule{chaos.Overlap}},
		{what: "two leases at once, long after a clock was set forward", tell: func(s *story) {
			s.fault(30, 40)
			s.lease(1, 50, 60, 100, 100)
			s.lease(2, 50, 80, 150, 140)
		}, want: []chaos.Rule{chaos.Overlap}},
		{what: "a lease that was extended, and another before its new deadline", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 200)
			s.Events = s.Events[:2]
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1}
			s.add(e, chaos.Extend, 80, 0)
			s.add(e, chaos.Extended, 81, 180)
			s.lease(2, 90, 120, 300, 250)
		}, want: []chaos.Rule{chaos.Overlap}},
		{what: "a token that goes back", tell: func(s *story) {
			s.lease(2, 0, 10, 100, 50)
			s.lease(1, 60, 70, 150, 140)
		}, want: []chaos.Rule{chaos.TokenOrder}},
		{what: "the same token twice", tell: func(s *story) {
			s.lease(2, 0, 10, 100, 50)
			s.lease(2, 60, 70, 150, 140)
		}, want: []chaos.Rule{chaos.TokenOrder}},
		{what: "a token that goes back after many", tell: func(s *story) {
			for i := range int64(50) {
				s.lease(uint64(10+i), 100*i, 100*i+1, 100*i+90, 100*i+50)
			}
			s.lease(10, 6000, 6001, 6100, 6050)
		}, want: []chaos.Rule{chaos.TokenOrder}},
		{what: "a token that goes back after a fence was evicted", tell: func(s *story) {
			s.Faults = append(s.Faults, chaos.Fault{Family: "evict", Beyond: true, Node: 1, Breaks: []chaos.Span{{From: 52, To: 55}}})
			s.lease(2, 0, 10, 100, 50)
			s.lease(1, 60, 70, 150, 140)
		}, excused: []chaos.Rule{chaos.TokenOrder}},
		{what: "a token that goes back between leases that were asked for at once", tell: func(s *story) {
			// Neither was asked for after the other, but one ended before the
			// other came.
			s.lease(2, 0, 10, 100, 50)
			s.lease(1, 5, 60, 150, 140)
		}, want: []chaos.Rule{chaos.TokenOrder}},
		{what: "an extension after another lease was given", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 200)
			s.Events = s.Events[:2]
			s.lease(2, 90, 120, 300, 150)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1}
			s.add(e, chaos.Extend, 160, 0)
			s.add(e, chaos.Extended, 161, 0)
		}, want: []chaos.Rule{chaos.Creation}},
		{what: "a lock that was broken and given to another", tell: func(s *story) {
			s.breaks(5, 40, 45)
			s.lease(5, 0, 10, 100, 90)
			s.lease(6, 42, 50, 150, 140)
		}},
		{what: "a lock that was given before the break that took it away", tell: func(s *story) {
			s.breaks(5, 60, 65)
			s.lease(5, 0, 10, 100, 90)
			s.lease(6, 42, 50, 150, 140)
		}, want: []chaos.Rule{chaos.Overlap}},
		{what: "a later lease that a break has not touched", tell: func(s *story) {
			s.breaks(5, 40, 45)
			s.lease(6, 30, 42, 100, 90)
			s.lease(7, 44, 50, 150, 140)
		}, want: []chaos.Rule{chaos.Overlap}},
		{what: "an extension after the lock was broken", tell: func(s *story) {
			s.breaks(5, 40, 45)
			n := s.lease(5, 0, 10, 100, 90)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 5}
			s.add(e, chaos.Extend, 46, 0)
			s.add(e, chaos.Extended, 50, 0)
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
	})
}

func TestJudgeKnowsReadersSlotsAndDowngrades(t *testing.T) {
	overlap, order := []chaos.Rule{chaos.Overlap}, []chaos.Rule{chaos.TokenOrder}
	judge(t, []doctored{
		{what: "readers together, in any order of tokens, and writers before and after", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 20)
			s.share(reader, 5, 21, 30, 200, 100)
			s.share(reader, 3, 40, 50, 200, 120)
			s.share(reader, 5, 60, 70, 200, 110)
			s.lease(6, 45, 121, 300, 200)
		}},
		{what: "three slots together, and a writer after them", tell: func(s *story) {
			s.share(slot(0), 1, 0, 10, 200, 100)
			s.share(slot(1), 2, 0, 11, 200, 150)
			s.share(slot(2), 3, 0, 12, 200, 160)
			s.share(slot(0), 4, 20, 101, 300, 160)
			s.lease(5, 20, 161, 300, 200)
		}},
		{what: "slots that were asked for at once, in another order than they came", tell: func(s *story) {
			s.share(slot(1), 2, 0, 10, 200, 150)
			s.share(slot(0), 1, 0, 30, 200, 100)
		}},
		{what: "a reader beside a writer", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 80)
			s.share(reader, 2, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a writer beside a reader", tell: func(s *story) {
			s.share(reader, 1, 0, 10, 100, 80)
			s.lease(2, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a writer beside the first of two readers", tell: func(s *story) {
			s.share(reader, 1, 0, 10, 100, 100)
			s.share(reader, 2, 0, 11, 100, 40)
			s.lease(3, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a writer beside a reader whose lock was evicted", tell: func(s *story) {
			s.fault(30, 40)
			s.share(reader, 1, 0, 10, 100, 80)
			s.lease(2, 20, 50, 150, 140)
		}, excused: []chaos.Rule{chaos.Overlap}},
		{what: "a writer beside a reader, before a clock was set", tell: func(s *story) {
			s.share(reader, 1, 0, 10, 100, 80)
			s.lease(2, 20, 50, 150, 140)
			s.fault(51, 60)
		}, want: overlap},
		{what: "a reader beside a slot", tell: func(s *story) {
			s.share(slot(0), 1, 0, 10, 100, 80)
			s.share(reader, 2, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a slot beside a writer", tell: func(s *story) {
			s.lease(1, 0, 10, 100, 80)
			s.share(slot(2), 2, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a slot twice", tell: func(s *story) {
			s.share(slot(1), 1, 0, 10, 100, 80)
			s.share(slot(1), 2, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a slot twice, while a lock was evicted", tell: func(s *story) {
			s.fault(30, 40)
			s.share(slot(1), 1, 0, 10, 100, 80)
			s.share(slot(1), 2, 20, 50, 150, 140)
		}, excused: []chaos.Rule{chaos.Overlap}},
		{what: "four of three slots", tell: func(s *story) {
			for i := range 4 {
				s.share(slot(i), uint64(i+1), 0, 10+int64(i), 100, 80)
			}
		}, want: overlap},
		{what: "slots of another number beside three", tell: func(s *story) {
			s.share(slot(0), 1, 0, 10, 100, 80)
			s.share(chaos.Share{Mode: chaos.Slot, Slots: 4, Slot: 3}, 2, 20, 50, 150, 140)
		}, want: overlap},
		{what: "a reader's token below an earlier writer's", tell: func(s *story) {
			s.lease(5, 0, 10, 100, 20)
			s.share(reader, 4, 30, 40, 150, 50)
		}, want: order},
		{what: "a reader's token that is an earlier writer's", tell: func(s *story) {
			s.lease(5, 0, 10, 100, 20)
			s.share(reader, 5, 30, 40, 150, 50)
		}, want: order},
		{what: "a reader's token below an earlier writer's, after a fence was evicted", tell: func(s *story) {
			s.Faults = append(s.Faults, chaos.Fault{Family: "evict", Beyond: true, Node: 1, Breaks: []chaos.Span{{From: 22, To: 25}}})
			s.lease(5, 0, 10, 100, 20)
			s.share(reader, 4, 30, 40, 150, 50)
		}, excused: []chaos.Rule{chaos.TokenOrder}},
		{what: "a reader's token below that of a writer before other readers", tell: func(s *story) {
			s.lease(5, 0, 10, 100, 20)
			s.share(reader, 6, 30, 40, 150, 50)
			s.share(reader, 4, 60, 70, 150, 90)
		}, want: order},
		{what: "a writer's token below an earlier reader's", tell: func(s *story) {
			s.share(reader, 5, 0, 10, 100, 20)
			s.lease(4, 30, 40, 150, 50)
		}, want: order},
		{what: "a slot's token below that of another slot", tell: func(s *story) {
			s.share(slot(0), 5, 0, 10, 100, 90)
			s.share(slot(1), 4, 30, 40, 150, 50)
		}, want: order},
		{what: "a slot's token below that of another slot, which came before this one was free", tell: func(s *story) {
			s.share(slot(0), 1, 0, 10, 100, 50)
			s.share(slot(1), 3, 0, 20, 100, 90)
			s.share(slot(0), 2, 0, 60, 150, 90)
		}, want: order},
		{what: "the same token for two slots that were asked for at once", tell: func(s *story) {
			s.share(slot(0), 1, 0, 10, 100, 50)
			s.share(slot(1), 1, 0, 20, 100, 90)
		}, want: order},
		{what: "a slot's token below an earlier reader's", tell: func(s *story) {
			s.share(reader, 5, 0, 10, 100, 20)
			s.share(slot(1), 4, 30, 40, 150, 50)
		}, want: order},
		{what: "a reader's token below an earlier slot's", tell: func(s *story) {
			s.share(slot(1), 5, 0, 10, 100, 20)
			s.share(reader, 4, 30, 40, 150, 50)
		}, want: order},
		{what: "readers beside a writer that was downgraded", tell: func(s *story) {
			n := s.lease(1, 0, 10, 200, 150)
			s.share(reader, 2, 20, 51, 150, 100)
			s.downgrade(n, 1, 50, 52)
			s.lease(3, 60, 151, 300, 200)
		}},
		{what: "readers beside a writer whose downgrade was not confirmed", tell: func(s *story) {
			n := s.lease(1, 0, 10, 200, 150)
			s.share(reader, 2, 20, 60, 150, 100)
			s.downgrade(n, 1, 50, 0)
			s.lease(3, 60, 151, 300, 200)
		}},
		{what: "a reader beside a writer, before it was downgraded", tell: func(s *story) {
			n := s.lease(1, 0, 10, 200, 150)
			s.share(reader, 2, 20, 49, 150, 100)
			s.downgrade(n, 1, 50, 52)
		}, want: overlap},
		{what: "a writer beside one that was downgraded", tell: func(s *story) {
			n := s.lease(1, 0, 10, 200, 150)
			s.downgrade(n, 1, 50, 52)
			s.lease(2, 20, 60, 150, 100)
		}, want: overlap},
		{what: "a slot beside a writer that was downgraded", tell: func(s *story) {
			n := s.lease(1, 0, 10, 200, 150)
			s.downgrade(n, 1, 50, 52)
			s.share(slot(0), 2, 20, 60, 150, 100)
		}, want: overlap},
		{what: "a reader's token below that of a writer that was downgraded", tell: func(s *story) {
			n := s.lease(5, 0, 10, 200, 150)
			s.downgrade(n, 5, 50, 52)
			s.share(reader, 4, 60, 70, 150, 100)
		}, want: order},
		{what: "an extension of a reader after another reader was given", tell: func(s *story) {
			n := s.share(reader, 1, 0, 10, 200, 200)
			s.share(reader, 2, 20, 30, 150, 140)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1}
			s.add(e, chaos.Extend, 40, 0)
			s.add(e, chaos.Extended, 41, 0)
		}},
		{what: "an extension of a reader after a writer was given", tell: func(s *story) {
			n := s.share(reader, 1, 0, 10, 100, 100)
			s.share(reader, 2, 20, 30, 100, 90)
			s.lease(3, 90, 120, 300, 150)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1}
			s.add(e, chaos.Extend, 160, 0)
			s.add(e, chaos.Extended, 161, 0)
		}, want: []chaos.Rule{chaos.Creation}},
		{what: "a lock that is kept, and others beside and after it", tell: func(s *story) {
			s.keep(s.share(slot(0), 1, 0, 10, 100, 20), 200)
			s.share(slot(1), 2, 20, 40, 100, 50)
			s.share(slot(0), 3, 20, 198, 300, 250)
		}},
		{what: "a lock that is given to another while it is kept", tell: func(s *story) {
			s.keep(s.lease(1, 0, 10, 100, 20), 200)
			s.lease(2, 20, 197, 300, 250)
		}, want: []chaos.Rule{chaos.Keep}},
		{what: "a writer while the lock is kept for a reader", tell: func(s *story) {
			s.keep(s.share(reader, 1, 0, 10, 100, 20), 200)
			s.share(reader, 2, 20, 40, 100, 50)
			s.lease(3, 20, 60, 300, 250)
		}, want: []chaos.Rule{chaos.Keep}},
		{what: "a lock that is given to another while it is kept, after a clock was set", tell: func(s *story) {
			s.fault(30, 40)
			s.keep(s.lease(1, 0, 10, 100, 20), 200)
			s.lease(2, 20, 60, 300, 250)
		}, excused: []chaos.Rule{chaos.Keep}},
		{what: "readers who read, and a writer after them", tell: func(s *story) {
			s.step(chaos.Claim, 1, 1, 0)
			s.write(1, 1, 0, 1)
			s.step(chaos.Look, 5, 1, 1)
			s.step(chaos.Look, 3, 2, 1)
			s.step(chaos.Look, 5, 1, 1)
			s.step(chaos.Claim, 6, 1, 1)
			s.write(6, 1, 1, 2)
		}},
		{what: "a stale read that was accepted", tell: func(s *story) {
			s.step(chaos.Look, 1, 1, 0)
			s.write(2, 2, 0, 1)
			s.step(chaos.Look, 1, 1, 1)
		}, want: []chaos.Rule{chaos.StaleRead}},
		{what: "a stale read that was accepted after a claim", tell: func(s *story) {
			s.step(chaos.Claim, 2, 2, 0)
			s.step(chaos.Look, 1, 1, 0)
		}, want: []chaos.Rule{chaos.StaleRead}},
		{what: "a read of what is not there any more", tell: func(s *story) {
			s.write(1, 2, 0, 1)
			s.step(chaos.Look, 2, 1, 0)
		}, want: []chaos.Rule{chaos.StaleRead}},
		{what: "a stale write that was accepted after a read", tell: func(s *story) {
			s.step(chaos.Claim, 1, 2, 0)
			s.step(chaos.Look, 2, 1, 0)
			s.write(1, 2, 0, 1)
		}, want: []chaos.Rule{chaos.StaleWrite}},
		{what: "a stale write that was accepted after a claim", tell: func(s *story) {
			s.step(chaos.Claim, 2, 1, 0)
			s.write(1, 2, 0, 1)
		}, want: []chaos.Rule{chaos.StaleWrite}},
		{what: "a claim that did not see the last write", tell: func(s *story) {
			s.write(1, 2, 0, 1)
			s.step(chaos.Claim, 2, 1, 0)
		}, want: []chaos.Rule{chaos.LostUpdate}},
		{what: "a downgraded writer that writes", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 80)
			s.write(1, 1+n%3, 0, 1)
			s.downgrade(n, 1, 20, 21)
			s.write(1, 1+n%3, 1, 2)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Token: 1, From: 1, To: 2}
			s.add(e, chaos.Wrote, 30, 0)
		}, want: []chaos.Rule{chaos.StaleWrite}},
		{what: "a downgraded writer that writes after it has read, and is killed before it says so", tell: func(s *story) {
			s.write(1, 1, 0, 1)
			s.step(chaos.Look, 1, 1, 1)
			s.write(1, 1, 1, 2)
		}, want: []chaos.Rule{chaos.StaleWrite}},
		{what: "a reader that writes", tell: func(s *story) {
			n := s.share(reader, 1, 0, 10, 100, 80)
			s.write(1, 1+n%3, 0, 1)
			e := chaos.Event{Client: 1 + n%3, Life: 1, Seq: n, Name: "job", Share: reader, Token: 1, To: 1}
			s.add(e, chaos.Wrote, 30, 0)
		}, want: []chaos.Rule{chaos.StaleWrite}},
		{what: "a holder that is refused after its end", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 100)
			s.lease(2, 0, 110, 200, 150)
			s.refused(n, 1, 120)
		}},
		{what: "a valid holder that is refused", tell: func(s *story) {
			n := s.lease(1, 0, 10, 100, 100)
			s.refused(n, 1, 20)
		}, want: []chaos.Rule{chaos.Refusal}},
		{what: "a valid reader that is refused", tell: func(s *story) {
			s.share(reader, 2, 0, 10, 100, 100)
			n := s.share(reader, 1, 0, 20, 100, 100)
			s.refused(n, 1, 30)
		}, want: []chaos.Rule{chaos.Refusal}},
		{what: "a valid holder that is refused, after a fence was evicted", tell: func(s *story) {
			s.Faults = append(s.Faults, chaos.Fault{Family: "evict", Beyond: true, Node: 1, Breaks: []chaos.Span{{From: 52, To: 55}}})
			s.lease(2, 0, 10, 100, 50)
			n := s.lease(1, 60, 70, 150, 140)
			s.refused(n, 1, 80)
		}, excused: []chaos.Rule{chaos.Refusal, chaos.TokenOrder}},
	})
}

func TestJudgeCountsEveryKind(t *testing.T) {
	s := newStory()
	n := s.lease(1, 0, 10, 200, 150)
	s.share(reader, 2, 20, 60, 150, 100)
	s.share(reader, 3, 20, 61, 150, 100)
	s.share(reader, 4, 20, 105, 150, 110)
	s.downgrade(n, 1, 50, 52)
	s.share(slot(0), 5, 60, 151, 300, 200)
	s.share(slot(2), 6, 60, 152, 300, 200)
	s.keep(s.share(slot(1), 7, 60, 201, 300, 240), 50)
	v := chaos.Judge(&s.History)
	want := chaos.Counts{chaos.Writers: 1, chaos.Readers: 3, chaos.Slots: 3, chaos.Downgrades: 1, chaos.MostReaders: 3, chaos.MostSlots: 2, chaos.Kept: 1}
	if !v.Held() || !maps.Equal(v.Counts, want) || v.Counts.Acquisitions() != 7 {
		t.Errorf("%+v", v)
	}
	r := &chaos.Result{History: &s.History, Verdict: v}
	if s.Healed = int64(time.Minute); r.Never() != "" || r.Enough() != nil {
		t.Errorf("never happened: %q, %v", r.Never(), r.Enough())
	}
}

func TestRunInWhichAKindNeverHappenedSaysSo(t *testing.T) {
	s := newStory()
	s.Clients, s.Live = 2, []int{1, 2}
	s.lease(1, 0, 10, 200, 150)
	s.share(reader, 2, 20, 160, 250, 200)
	r := &chaos.Result{History: &s.History, Verdict: chaos.Judge(&s.History)}
	const never = "writers that became readers (0), readers at once, at most (1), acquired slots (0), slots at once, at most (0), kept after their release (0)"
	if got := r.Never(); got != never || r.Enough() != nil {
		t.Errorf("a short run: %q, %v", got, r.Enough())
	}
	s.Healed = int64(time.Minute)
	if s.Names = 2; r.Never() != "writers that became readers (0), acquired slots (0), kept after their release (0)" {
		t.Errorf("few clients for the names: %q", r.Never())
	}
	s.Names = 1
	if err := r.Enough(); err == nil || !strings.Contains(err.Error(), "it had too few of: "+never) {
		t.Errorf("a long run: %v", err)
	}
	if text := r.String(); !strings.Contains(text, "too few: "+never+"\n") {
		t.Errorf("its text: %s", text)
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

// TestCalmRunHasNoFailures tells the same failures with and without faults.
func TestCalmRunHasNoFailures(t *testing.T) {
	failure := func(kind chaos.Kind, stalled time.Duration) func(*story) {
		return func(s *story) {
			s.Calm = true
			s.lease(1, 0, 10, 200, 150)
			s.Events = append(s.Events, chaos.Event{Kind: kind, At: 300, Client: 1, Life: 1, Seq: 9, Name: "job", Err: "no", Stall: int64(stalled)})
		}
	}
	stories := []doctored{
		{"no failure", func(s *story) { s.Calm = true; s.lease(1, 0, 10, 200, 150) }, nil, nil},
		{"a failure with faults", func(s *story) { failure(chaos.Missed, 0)(s); s.Calm = false }, nil, nil},
		{"the resource failed", failure(chaos.Failed, 0), nil, nil},
	}
	for _, kind := range []chaos.Kind{chaos.Missed, chaos.Lost, chaos.Released} {
		stories = append(stories,
			doctored{string(kind), failure(kind, time.Second), []chaos.Rule{chaos.Calm}, nil},
			doctored{string(kind) + " in a stall", failure(kind, 11*time.Second), nil, []chaos.Rule{chaos.Calm}})
	}
	judge(t, stories)
}
