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
func (s *story) lease(share chaos.Share, token uint64, asked, got, deadline, released int64) *story {
	s.last = chaos.Event{Client: 1, Life: 1, Seq: s.last.Seq + 1, Name: "job", Share: share, Token: token}
	s.add(chaos.Event{Kind: chaos.Ask, At: asked})
	s.add(chaos.Event{Kind: chaos.Got, At: got, Deadline: deadline})
	if released < deadline {
		s.add(chaos.Event{Kind: chaos.Release, At: released})
	}
	return s
}

// add adds an event of the last lease.
func (s *story) add(e chaos.Event) *story {
	e.Client, e.Life, e.Seq, e.Name, e.Share, e.Token = s.last.Client, s.last.Life, s.last.Seq, s.last.Name, s.last.Share, s.last.Token
	s.Events = append(s.Events, e)
	return s
}

// wrote adds that the last lease was confirmed a write.
func (s *story) wrote(at int64) *story { return s.add(chaos.Event{Kind: chaos.Wrote, At: at, To: 1}) }

// with changes the history in another way.
func (s *story) with(change func(*story)) *story { change(s); return s }

// extended adds an extension of the last lease.
func (s *story) extended(at, deadline int64) *story {
	return s.add(chaos.Event{Kind: chaos.Extend, At: at}).add(chaos.Event{Kind: chaos.Extended, At: at + 1, Deadline: deadline})
}

// downgraded adds a downgrade of the last lease.
func (s *story) downgraded(at int64, err string) *story {
	return s.add(chaos.Event{Kind: chaos.Downgrade, At: at}).add(chaos.Event{Kind: chaos.Downgraded, At: at + 2, Err: err})
}

// kept has the lock of the last lease, which was not released yet, stay taken.
func (s *story) kept(d int64) *story {
	i := slices.IndexFunc(s.Events, func(e chaos.Event) bool { return e.Seq == s.last.Seq && e.Kind == chaos.Got })
	s.Events[i].Keep = d
	return s
}

// refused adds a step of the last lease that the resource refused.
func (s *story) refused(at int64) *story { return s.add(chaos.Event{Kind: chaos.Refused, At: at}) }

// fault adds one that breaks an assumption.
func (s *story) fault(at int64) *story {
	s.Faults = append(s.Faults, chaos.Fault{Family: "evict", Beyond: true, Node: 2, Breaks: []chaos.Span{{From: at, To: at + 3}}})
	return s
}

// breaks has an operator break the leases up to token 5.
func (s *story) breaks(from, to int64) *story {
	b := chaos.Broken{Name: "job", Token: 5, Sure: true, Span: chaos.Span{From: from, To: to}}
	s.Faults = append(s.Faults, chaos.Fault{Family: "break", Broken: []chaos.Broken{b}})
	return s
}

const write, claim, look = chaos.Write, chaos.Claim, chaos.Look

// step adds an accepted step of a client that has read the counter.
func (s *story) step(step chaos.Step, token uint64, client int, was int64) *story {
	r := chaos.Row{Name: "job", Step: step, Token: token, Client: client, Was: was, Is: was}
	if step == write {
		r.Is++
		s.Counters["job"] = r.Is
	}
	s.Rows = append(s.Rows, r)
	return s
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
	wants, excused chaos.Rule // the rules that are broken; "" for none
	*story
}

func judge(t *testing.T, stories []doctored) {
	is := func(findings []chaos.Finding, want chaos.Rule) bool {
		got := rules(findings)
		return len(got) == 0 && want == "" || len(got) == 1 && got[0] == want
	}
	for _, c := range stories {
		v := chaos.Judge(&c.History)
		if !is(v.Violations, c.wants) || !is(v.Excused, c.excused) || v.Held() != (c.wants == "") {
			t.Errorf("%s: held %t, violations %v, excused %v; want %q and %q", c.what, v.Held(), v.Violations, v.Excused, c.wants, c.excused)
		}
	}
}

// late is a lease that is extended after another one was given.
func late(first, second chaos.Share) *story {
	s := newStory().lease(first, 1, 0, 10, 100, 100)
	one := s.last
	s.lease(second, 2, 20, 120, 300, 150).last = one
	return s.extended(160, 0)
}

func TestJudgeOfLeasesKnowsWhatHappenedToThem(t *testing.T) {
	judge(t, []doctored{
		{"a lease that was released, and another", "", "", newStory().lease(writer, 1, 0, 10, 100, 50).lease(writer, 2, 20, 51, 150, 150)},
		{"a lease that was extended, and another before its new deadline", chaos.Overlap, "", newStory().
			lease(writer, 1, 0, 10, 100, 100).extended(80, 180).lease(writer, 2, 90, 120, 300, 250)},
		{"two leases at once, after a lock was evicted", "", chaos.Overlap, newStory().fault(30).
			lease(writer, 1, 0, 10, 100, 100).lease(writer, 2, 20, 60, 150, 140)},
		{"two leases at once, before a lock was evicted", chaos.Overlap, "", newStory().
			lease(writer, 1, 0, 10, 100, 100).lease(writer, 2, 20, 60, 150, 140).fault(61)},
		{"two leases at once, long after a lock was evicted", chaos.Overlap, "", newStory().fault(30).
			lease(writer, 1, 50, 60, 100, 100).lease(writer, 2, 50, 80, 150, 140)},
		{"a token that goes back after a fence was evicted", "", chaos.TokenOrder, newStory().fault(52).
			lease(writer, 2, 0, 10, 100, 50).lease(writer, 1, 60, 70, 150, 140)},
		{"an extension after another lease was given", chaos.Creation, "", late(writer, writer)},
		{"an extension of a reader after a writer was given", chaos.Creation, "", late(reader, writer)},
		{"an extension of a reader after another reader was given", "", "", late(reader, reader)},
		{"a lock that was broken and given to another", "", "", newStory().breaks(40, 45).
			lease(writer, 5, 0, 10, 100, 90).lease(writer, 6, 42, 50, 150, 140)},
		{"a lock that was given before the break that took it away", chaos.Overlap, "", newStory().breaks(60, 65).
			lease(writer, 5, 0, 10, 100, 90).lease(writer, 6, 42, 50, 150, 140)},
		{"a later lease that a break has not touched", chaos.Overlap, "", newStory().breaks(40, 45).
			lease(writer, 6, 30, 42, 100, 90).lease(writer, 7, 44, 50, 150, 140)},
		{"an extension after the lock was broken", chaos.Creation, "", newStory().breaks(40, 45).
			lease(writer, 5, 0, 10, 100, 90).extended(46, 0)},
		{"readers beside a writer whose downgrade was not confirmed", "", "", newStory().
			lease(writer, 1, 0, 10, 200, 150).downgraded(50, "no quorum").lease(reader, 2, 20, 60, 150, 100)},
		{"a lock that is given to another while it is kept", chaos.Keep, "", newStory().
			lease(writer, 1, 0, 10, 100, 20).kept(200).lease(writer, 2, 20, 197, 300, 250)},
		{"a lock that was kept for long enough, by a clock that is 1 % too fast", "", "", newStory().
			lease(writer, 1, 0, 10, 100, 20).kept(200).lease(writer, 2, 20, 198, 300, 250)},
	})
}

func TestJudgeOfTheResourceFindsEveryOffence(t *testing.T) {
	judge(t, []doctored{
		{"readers who read, and a writer after them", "", "", newStory().
			step(claim, 1, 1, 0).step(write, 1, 1, 0).step(look, 5, 1, 1).step(look, 3, 2, 1).step(claim, 6, 1, 1).step(write, 6, 1, 1)},
		{"a stale write", chaos.StaleWrite, "", newStory().step(write, 3, 2, 0).step(write, 2, 1, 1)},
		{"a stale write after a read", chaos.StaleWrite, "", newStory().step(look, 2, 1, 0).step(write, 1, 2, 0)},
		{"a stale write after a claim", chaos.StaleWrite, "", newStory().step(claim, 2, 1, 0).step(write, 1, 2, 0)},
		{"a downgraded writer that writes after it has read, and is killed before it says so", chaos.StaleWrite, "", newStory().
			step(look, 1, 1, 0).step(write, 1, 1, 0)},
		{"a downgraded writer that says so", chaos.StaleWrite, "", newStory().
			lease(writer, 1, 0, 10, 100, 80).downgraded(20, "").step(write, 1, 1, 0).wrote(30)},
		{"a reader that writes", chaos.StaleWrite, "", newStory().lease(reader, 1, 0, 10, 100, 80).step(write, 1, 1, 0).wrote(30)},
		{"a stale read", chaos.StaleRead, "", newStory().step(write, 2, 2, 0).step(look, 1, 1, 1)},
		{"a stale read after a claim", chaos.StaleRead, "", newStory().step(claim, 2, 2, 0).step(look, 1, 1, 0)},
		{"a read of what is not there any more", chaos.StaleRead, "", newStory().step(write, 1, 2, 0).step(look, 2, 1, 0)},
		{"a claim that did not see the last write", chaos.LostUpdate, "", newStory().step(write, 1, 2, 0).step(claim, 2, 1, 0)},
		{"an update that was lost", chaos.LostUpdate, "", newStory().step(write, 1, 1, 0).step(write, 2, 2, 0)},
		{"a counter that is not what was written last", chaos.LostUpdate, "", newStory().
			step(write, 1, 1, 0).with(func(s *story) { s.Counters["job"] = 7 })},
		{"a write that was confirmed and is not there", chaos.LostUpdate, "", newStory().lease(writer, 1, 0, 10, 100, 100).wrote(20)},
		{"a holder that is refused after its end", "", "", newStory().lease(writer, 1, 0, 10, 100, 100).refused(120)},
		{"a valid holder that is refused", chaos.Refusal, "", newStory().lease(writer, 1, 0, 10, 100, 100).refused(20)},
		{"a valid reader that is refused, after another's fence was evicted", "", chaos.Refusal, newStory().
			lease(reader, 2, 0, 10, 100, 50).fault(52).lease(reader, 1, 60, 70, 150, 140).refused(80)},
		{"a lock that is left on a server", chaos.Ghost, "", newStory().with(func(s *story) { s.Left = map[int][]string{3: {"job"}} })},
		{"a client that gets no lock any more", chaos.Liveness, "", newStory().with(func(s *story) { s.Clients = 2 })},
	})
}

func TestJudgeCountsEveryKind(t *testing.T) {
	s := newStory().lease(writer, 1, 0, 10, 200, 150).downgraded(50, "").
		lease(reader, 2, 20, 60, 150, 100).lease(reader, 3, 20, 61, 150, 100).lease(reader, 4, 20, 105, 150, 110).
		lease(slot(0), 5, 60, 151, 300, 200).lease(slot(2), 6, 60, 152, 300, 200).lease(slot(1), 7, 60, 201, 300, 240).kept(50)
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
	s := newStory().lease(writer, 1, 0, 10, 200, 150).lease(reader, 2, 20, 160, 250, 200)
	s.Clients, s.Live = 2, []int{1, 2}
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
	s := newStory().step(write, 1, 1, 0).step(write, 3, 2, 1).step(write, 2, 1, 1)
	s.Fenced = false
	v := chaos.Judge(&s.History)
	if got := rules(v.Corruption); !v.Held() || !slices.Equal(got, []chaos.Rule{chaos.LostUpdate, chaos.StaleWrite}) {
		t.Errorf("held %t, corruption %q", v.Held(), got)
	}
}

// TestCalmRunHasNoFailures tells the same failures with and without faults.
func TestCalmRunHasNoFailures(t *testing.T) {
	failure := func(kind chaos.Kind, calm bool, stalled time.Duration) *story {
		s := newStory().lease(writer, 1, 0, 10, 200, 150).add(chaos.Event{Kind: kind, At: 300, Err: "no", Stall: int64(stalled)})
		s.Calm = calm
		return s
	}
	stories := []doctored{
		{"no failure", "", "", newStory().lease(writer, 1, 0, 10, 200, 150).with(func(s *story) { s.Calm = true })},
		{"a failure with faults", "", "", failure(chaos.Missed, false, 0)},
		{"the resource failed", "", "", failure(chaos.Failed, true, 0)},
	}
	for _, kind := range []chaos.Kind{chaos.Missed, chaos.Lost, chaos.Released} {
		stories = append(stories,
			doctored{string(kind), chaos.Calm, "", failure(kind, true, time.Second)},
			doctored{string(kind) + " in a stall", "", chaos.Calm, failure(kind, true, 11*time.Second)})
	}
	judge(t, stories)
}
