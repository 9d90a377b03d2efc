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

// Package exclusion tests how leases are judged. Here leases are put together from
// events, broken rules are excused, and the rules about the resource are judged.

// story makes a history of one name, "job", with explicit times.
type story struct {
	chaos.History
	last chaos.Event // of the last lease
}

func newStory() *story {
	return &story{History: chaos.History{Fenced: true, Clients: 1, Live: []int{1}, Counters: map[string]int64{}}}
}

// lease adds a lease that was asked for, acquired and given up at the given
// moments; one that is given up at its deadline was never released.
func (s *story) lease(share chaos.Share, token uint64, asked, got, deadline, released int64) {
	s.last = chaos.Event{Client: 1, Life: 1, Seq: s.last.Seq + 1, Name: "job", Share: share, Token: token}
	s.add(chaos.Event{Kind: chaos.Ask, At: asked})
	s.add(chaos.Event{Kind: chaos.Got, At: got, Deadline: deadline})
	if released < deadline {
		s.add(chaos.Event{Kind: chaos.Release, At: released})
	}
}

// add adds an event of the last lease.
func (s *story) add(e chaos.Event) {
	e.Client, e.Life, e.Seq, e.Name, e.Share, e.Token = s.last.Client, s.last.Life, s.last.Seq, s.last.Name, s.last.Share, s.last.Token
	s.Events = append(s.Events, e)
}

// extended adds an extension of the last lease.
func (s *story) extended(at, deadline int64) {
	s.add(chaos.Event{Kind: chaos.Extend, At: at})
	s.add(chaos.Event{Kind: chaos.Extended, At: at + 1, Deadline: deadline})
}

// downgraded adds a downgrade of the last lease.
func (s *story) downgraded(at int64, err string) {
	s.add(chaos.Event{Kind: chaos.Downgrade, At: at})
	s.add(chaos.Event{Kind: chaos.Downgraded, At: at + 2, Err: err})
}

// kept has the lock of the last lease, which was not released yet, stay taken.
func (s *story) kept(d int64) {
	i := slices.IndexFunc(s.Events, func(e chaos.Event) bool { return e.Seq == s.last.Seq && e.Kind == chaos.Got })
	s.Events[i].Keep = d
}

// refused adds a step of the last lease that the resource refused.
func (s *story) refused(at int64) { s.add(chaos.Event{Kind: chaos.Refused, At: at}) }

// fault adds one that breaks an assumption.
func (s *story) fault(at int64) {
	s.Faults = append(s.Faults, chaos.Fault{Family: "evict", Beyond: true, Node: 2, Breaks: []chaos.Span{{From: at, To: at + 3}}})
}

// breaks has an operator break the leases up to token 5.
func (s *story) breaks(from, to int64) {
	b := chaos.Broken{Name: "job", Token: 5, Sure: true, Span: chaos.Span{From: from, To: to}}
	s.Faults = append(s.Faults, chaos.Fault{Family: "break", Broken: []chaos.Broken{b}})
}

const write, claim, look = chaos.Write, chaos.Claim, chaos.Look

// step adds an accepted step of a client that has read the counter.
func (s *story) step(step chaos.Step, token uint64, client int, was int64) {
	r := chaos.Row{Name: "job", Step: step, Token: token, Client: client, Was: was, Is: was}
	if step == write {
		r.Is++
		s.Counters["job"] = r.Is
	}
	s.Rows = append(s.Rows, r)
}

// The kinds of leases.
var writer, reader = chaos.Share{}, chaos.Share{Mode: chaos.Reader}

func slot(n int) chaos.Share {
	return chaos.Share{Mode: chaos.Slot, Slots: 3, Slot: uint8(n)}
}

// rules returns the rules that the findings are about, each once.
func rules(findings []chaos.Finding) []chaos.Rule {
	var all []chaos.Rule
	for _, f := range findings {
		all = append(all, f.Rule)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// doctored is a history, and what the judge must find in it.
type doctored struct {
	what           string
	tell           func(s *story)
	wants, excused chaos.Rule // the rules that are broken; "" for none
}

func judge(t *testing.T, stories []doctored) {
	is := func(findings []chaos.Finding, want chaos.Rule) bool {
		got := rules(findings)
		return len(got) == 0 && want == "" || len(got) == 1 && got[0] == want
	}
	for _, c := range stories {
		s := newStory()
		c.tell(s)
		v := chaos.Judge(&s.History)
		if !is(v.Violations, c.wants) || !is(v.Excused, c.excused) || v.Held() != (c.wants == "") {
			t.Errorf("%s: held %t, violations %v, excused %v; want %q and %q", c.what, v.Held(), v.Violations, v.Excused, c.wants, c.excused)
		}
	}
}

// late is a lease that is extended after another one was given.
func late(s *story, first, second chaos.Share) {
	s.lease(first, 1, 0, 10, 100, 100)
	one := s.last
	s.lease(second, 2, 20, 120, 300, 150)
	s.last = one
	s.extended(160, 0)
}

func TestJudgeOfLeasesKnowsWhatHappenedToThem(t *testing.T) {
	judge(t, []doctored{
		{"a lease that was released, and another", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 50)
			s.lease(writer, 2, 20, 51, 150, 150)
		}, "", ""},
		{"a lease that was extended, and another before its new deadline", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 100)
			s.extended(80, 180)
			s.lease(writer, 2, 90, 120, 300, 250)
		}, chaos.Overlap, ""},
		{"two leases at once, after a lock was evicted", func(s *story) {
			s.fault(30)
			s.lease(writer, 1, 0, 10, 100, 100)
			s.lease(writer, 2, 20, 60, 150, 140)
		}, "", chaos.Overlap},
		{"two leases at once, before a lock was evicted", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 100)
			s.lease(writer, 2, 20, 60, 150, 140)
			s.fault(61)
		}, chaos.Overlap, ""},
		{"two leases at once, long after a lock was evicted", func(s *story) {
			s.fault(30)
			s.lease(writer, 1, 50, 60, 100, 100)
			s.lease(writer, 2, 50, 80, 150, 140)
		}, chaos.Overlap, ""},
		{"a token that goes back after a fence was evicted", func(s *story) {
			s.fault(52)
			s.lease(writer, 2, 0, 10, 100, 50)
			s.lease(writer, 1, 60, 70, 150, 140)
		}, "", chaos.TokenOrder},
		{"an extension after another lease was given", func(s *story) { late(s, writer, writer) }, chaos.Creation, ""},
		{"an extension of a reader after a writer was given", func(s *story) { late(s, reader, writer) }, chaos.Creation, ""},
		{"an extension of a reader after another reader was given", func(s *story) { late(s, reader, reader) }, "", ""},
		{"a lock that was broken and given to another", func(s *story) {
			s.breaks(40, 45)
			s.lease(writer, 5, 0, 10, 100, 90)
			s.lease(writer, 6, 42, 50, 150, 140)
		}, "", ""},
		{"a lock that was given before the break that took it away", func(s *story) {
			s.breaks(60, 65)
			s.lease(writer, 5, 0, 10, 100, 90)
			s.lease(writer, 6, 42, 50, 150, 140)
		}, chaos.Overlap, ""},
		{"a later lease that a break has not touched", func(s *story) {
			s.breaks(40, 45)
			s.lease(writer, 6, 30, 42, 100, 90)
			s.lease(writer, 7, 44, 50, 150, 140)
		}, chaos.Overlap, ""},
		{"an extension after the lock was broken", func(s *story) {
			s.breaks(40, 45)
			s.lease(writer, 5, 0, 10, 100, 90)
			s.extended(46, 0)
		}, chaos.Creation, ""},
		{"readers beside a writer whose downgrade was not confirmed", func(s *story) {
			s.lease(writer, 1, 0, 10, 200, 150)
			s.downgraded(50, "no quorum")
			s.lease(reader, 2, 20, 60, 150, 100)
		}, "", ""},
		{"a lock that is given to another while it is kept", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 20)
			s.kept(200)
			s.lease(writer, 2, 20, 197, 300, 250)
		}, chaos.Keep, ""},
		{"a lock that was kept for long enough", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 20)
			s.kept(200)
			s.lease(writer, 2, 20, 198, 300, 250) // a clock may be 1 % too fast
		}, "", ""},
	})
}

func TestJudgeOfTheResourceFindsEveryOffence(t *testing.T) {
	judge(t, []doctored{
		{"readers who read, and a writer after them", func(s *story) {
			s.step(claim, 1, 1, 0)
			s.step(write, 1, 1, 0)
			s.step(look, 5, 1, 1)
			s.step(look, 3, 2, 1)
			s.step(claim, 6, 1, 1)
			s.step(write, 6, 1, 1)
		}, "", ""},
		{"a stale write", func(s *story) { s.step(write, 3, 2, 0); s.step(write, 2, 1, 1) }, chaos.StaleWrite, ""},
		{"a stale write after a read", func(s *story) { s.step(look, 2, 1, 0); s.step(write, 1, 2, 0) }, chaos.StaleWrite, ""},
		{"a stale write after a claim", func(s *story) { s.step(claim, 2, 1, 0); s.step(write, 1, 2, 0) }, chaos.StaleWrite, ""},
		{"a downgraded writer that writes after it has read, and is killed before it says so", func(s *story) {
			s.step(look, 1, 1, 0)
			s.step(write, 1, 1, 0)
		}, chaos.StaleWrite, ""},
		{"a downgraded writer that says so", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 80)
			s.downgraded(20, "")
			s.step(write, 1, 1, 0)
			s.add(chaos.Event{Kind: chaos.Wrote, At: 30, To: 1})
		}, chaos.StaleWrite, ""},
		{"a reader that writes", func(s *story) {
			s.lease(reader, 1, 0, 10, 100, 80)
			s.step(write, 1, 1, 0)
			s.add(chaos.Event{Kind: chaos.Wrote, At: 30, To: 1})
		}, chaos.StaleWrite, ""},
		{"a stale read", func(s *story) { s.step(write, 2, 2, 0); s.step(look, 1, 1, 1) }, chaos.StaleRead, ""},
		{"a stale read after a claim", func(s *story) { s.step(claim, 2, 2, 0); s.step(look, 1, 1, 0) }, chaos.StaleRead, ""},
		{"a read of what is not there any more", func(s *story) { s.step(write, 1, 2, 0); s.step(look, 2, 1, 0) }, chaos.StaleRead, ""},
		{"a claim that did not see the last write", func(s *story) { s.step(write, 1, 2, 0); s.step(claim, 2, 1, 0) }, chaos.LostUpdate, ""},
		{"an update that was lost", func(s *story) { s.step(write, 1, 1, 0); s.step(write, 2, 2, 0) }, chaos.LostUpdate, ""},
		{"a counter that is not what was written last", func(s *story) {
			s.step(write, 1, 1, 0)
			s.Counters["job"] = 7
		}, chaos.LostUpdate, ""},
		{"a write that was confirmed and is not there", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 100)
			s.add(chaos.Event{Kind: chaos.Wrote, At: 20, To: 1})
		}, chaos.LostUpdate, ""},
		{"a holder that is refused after its end", func(s *story) {
			s.lease(writer, 1, 0, 10, 100, 100)
			s.refused(120)
		}, "", ""},
		{"a valid holder that is refused", func(s *story) { s.lease(writer, 1, 0, 10, 100, 100); s.refused(20) }, chaos.Refusal, ""},
		{"a valid reader that is refused, after another's fence was evicted", func(s *story) {
			s.lease(reader, 2, 0, 10, 100, 50)
			s.fault(52)
			s.lease(reader, 1, 60, 70, 150, 140)
			s.refused(80)
		}, "", chaos.Refusal},
		{"a lock that is left on a server", func(s *story) { s.Left = map[int][]string{3: {"job"}} }, chaos.Ghost, ""},
		{"a client that gets no lock any more", func(s *story) { s.Clients = 2 }, chaos.Liveness, ""},
	})
}

func TestJudgeCountsEveryKind(t *testing.T) {
	s := newStory()
	s.lease(writer, 1, 0, 10, 200, 150)
	s.downgraded(50, "")
	s.lease(reader, 2, 20, 60, 150, 100)
	s.lease(reader, 3, 20, 61, 150, 100)
	s.lease(reader, 4, 20, 105, 150, 110)
	s.lease(slot(0), 5, 60, 151, 300, 200)
	s.lease(slot(2), 6, 60, 152, 300, 200)
	s.lease(slot(1), 7, 60, 201, 300, 240)
	s.kept(50)
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
	s.lease(writer, 1, 0, 10, 200, 150)
	s.lease(reader, 2, 20, 160, 250, 200)
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
	s.step(write, 1, 1, 0)
	s.step(write, 3, 2, 1)
	s.step(write, 2, 1, 1)
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
			s.lease(writer, 1, 0, 10, 200, 150)
			s.add(chaos.Event{Kind: kind, At: 300, Err: "no", Stall: int64(stalled)})
		}
	}
	stories := []doctored{
		{"no failure", func(s *story) { s.Calm = true; s.lease(writer, 1, 0, 10, 200, 150) }, "", ""},
		{"a failure with faults", func(s *story) { failure(chaos.Missed, 0)(s); s.Calm = false }, "", ""},
		{"the resource failed", failure(chaos.Failed, 0), "", ""},
	}
	for _, kind := range []chaos.Kind{chaos.Missed, chaos.Lost, chaos.Released} {
		stories = append(stories,
			doctored{string(kind), failure(kind, time.Second), chaos.Calm, ""},
			doctored{string(kind) + " in a stall", failure(kind, 11*time.Second), "", chaos.Calm})
	}
	judge(t, stories)
}
