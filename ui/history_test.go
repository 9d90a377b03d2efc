package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// story tells a history what surveys find, a second apart.
type story struct {
	h  history
	at time.Time
}

func newStory() *story { return &story{at: time.Unix(1_800_000_000, 0)} }

// see notes a survey, and returns what happened, the first first.
func (s *story) see(change func(*snapshot)) []string {
	s.at = s.at.Add(time.Second)
	snap := &snapshot{at: s.at, nodes: []nodeHealth{{name: "n1", short: "n1", health: inService}, {name: "n2", short: "n2", health: inService}}}
	change(snap)
	slices.SortFunc(snap.locks, func(a, b lock) int { return strings.Compare(a.name, b.name) })
	before := s.h.seq
	s.h.note(snap, time.Second)
	var said []string
	for _, e := range slices.Backward(s.h.events) {
		if e.seq > before {
			said = append(said, strings.TrimSpace(e.node+e.lock+" "+e.text+" "+e.who))
		}
	}
	return said
}

// held is a lock that is held by owners, for another time.
func (s *story) held(name string, left time.Duration, owners ...string) lock {
	l := lock{name: name, state: admin.StateHeld}
	for i, o := range owners {
		l.holders = append(l.holders, holder{Holder: redlatch.Holder{Owner: o, Token: redlatch.Token(len(o) + i), Shared: len(owners) > 1}, until: s.at.Add(left)})
	}
	return l
}

// with is a survey that finds locks.
func with(locks ...lock) func(*snapshot) { return func(n *snapshot) { n.locks = locks } }

func (s *story) expect(t *testing.T, want []string, change func(*snapshot)) {
	t.Helper()
	if got := s.see(change); !slices.Equal(got, want) {
		t.Errorf("said is %q, want %q", got, want)
	}
}

func TestHistoryNamesWhatChanged(t *testing.T) {
	s := newStory()
	s.expect(t, []string{"Recording started."}, with(s.held("old", 10*time.Second, "a")))
	s.expect(t, nil, with(s.held("old", 10*time.Second, "a")))
	s.expect(t, []string{"job acquired by b"}, with(s.held("old", 10*time.Second, "a"), s.held("job", 10*time.Second, "b")))
	s.expect(t, []string{"job released by b", "job acquired by second"}, with(s.held("old", 10*time.Second, "a"), s.held("job", 1500*time.Millisecond, "second")))
	s.expect(t, []string{"old released by a"}, with(s.held("job", 500*time.Millisecond, "second")))
	s.expect(t, []string{"job expired; it was held by second"}, with())
	s.expect(t, []string{"files acquired (reader) by r1", "files acquired (reader) by r2"}, with(s.held("files", time.Minute, "r1", "r2")))
	s.expect(t, nil, with(lock{name: "free", state: admin.StateWaited, waiting: 2}, s.held("files", time.Minute, "r1", "r2")))
}

// TestReleasedLockIsNotShownAsExpired has a lock that is extended until a gap in
// the surveys, which outlasts its TTL, and one that is not extended.
func TestReleasedLockIsNotShownAsExpired(t *testing.T) {
	s := newStory()
	s.see(with())
	crashed := s.held("crashed", 10*time.Second, "a")
	for i := range 9 {
		s.see(with(crashed, s.held("living", time.Duration(10-i%3)*time.Second, "b")))
	}
	s.at = s.at.Add(4 * time.Second)
	s.expect(t, []string{"crashed expired; it was held by a"}, with(s.held("living", 9*time.Second, "b")))
	s.expect(t, []string{"living released by b"}, with())
	s.see(with(s.held("living", 9*time.Second, "b")))
	s.at = s.at.Add(20 * time.Second)
	said := s.see(with())
	if len(said) != 2 || said[1] != "living no longer held by b" {
		t.Errorf("after a gap: %q", said)
	}
}

// TestHistoryClaimsNothingThatIsNotKnown: a lock of which too few nodes report
// is not released.
func TestHistoryClaimsNothingThatIsNotKnown(t *testing.T) {
	s := newStory()
	s.see(with(s.held("job", time.Minute, "a")))
	for _, state := range []admin.State{admin.StateUnknown, admin.StateSplit} {
		s.expect(t, nil, with(lock{name: "job", state: state}))
	}
	s.expect(t, nil, func(n *snapshot) { n.err = errors.New("too few nodes") })
	s.expect(t, nil, with(s.held("job", time.Minute, "a")))
	s.expect(t, []string{"job released by a"}, with())
}

func TestHistoryNamesNodes(t *testing.T) {
	s := newStory()
	is := func(h health) func(*snapshot) {
		return func(n *snapshot) {
			n.nodes[1] = nodeHealth{name: "n2", short: "n2", health: h, why: "reasons", until: s.at.Add(30 * time.Second)}
		}
	}
	s.see(is(inService))
	s.expect(t, []string{"n2 no answer"}, is(noAnswer))
	s.expect(t, nil, is(noAnswer))
	s.expect(t, []string{"n2 not marked"}, is(unmarked))
	s.expect(t, []string{"n2 quarantined for another 30 s (reasons)"}, is(quarantined))
	s.expect(t, []string{"n2 refused: reasons"}, is(refused))
	s.expect(t, []string{"n2 back in service"}, is(inService))
	s.expect(t, []string{"n1, n2 no answer"}, func(n *snapshot) { n.nodes[0].health, n.nodes[1].health = noAnswer, noAnswer })
	begun := newStory()
	begun.expect(t, []string{"Recording started.", "n2 no answer"}, func(n *snapshot) { n.nodes[1].health = noAnswer })
}

func TestHistoryIsLimitedAndNamesItsGaps(t *testing.T) {
	s := newStory()
	s.see(with())
	var many []lock
	for i := range 1000 {
		many = append(many, s.held(fmt.Sprintf("job/%04d", i), time.Minute, "a"))
	}
	said := s.see(with(many...))
	if len(said) != maxAtOnce+1 || said[maxAtOnce] != "950 more changes." {
		t.Errorf("%d events, the last %q", len(said), said[len(said)-1])
	}
	for i := range 400 {
		s.see(with(s.held("job", time.Minute, strings.Repeat("x", i))))
	}
	if len(s.h.events) != maxEvents {
		t.Errorf("%d events are kept", len(s.h.events))
	}
	s.at = s.at.Add(20 * time.Second)
	if said := s.see(func(n *snapshot) { n.took = 20 * time.Second }); strings.HasPrefix(said[0], "Nobody") {
		t.Errorf("after a survey that took long: %q", said)
	}
	s.at = s.at.Add(3 * time.Minute)
	if said := s.see(with()); !strings.HasPrefix(said[0], "Not recording for 3 min 1 s;") {
		t.Errorf("after a gap: %q", said)
	}
}

// TestTheTrendIsWhatSurveysFound: the most in ten seconds, and ten minutes of it.
func TestTheTrendIsWhatSurveysFound(t *testing.T) {
	s := newStory()
	expect := func(want ...moment) {
		t.Helper()
		for i := range want {
			want[i].step += s.at.Unix() / 10
		}
		if got := s.h.trend; !slices.Equal(got, want) {
			t.Errorf("the trend is %v, want %v", got, want)
		}
	}
	waited := func(n int) lock { return lock{name: "free", state: admin.StateWaited, waiting: n} }
	s.see(with(s.held("old", time.Minute, "a"), waited(3)))
	s.see(with(s.held("job", time.Minute, "b"), waited(1)))
	expect(moment{waiting: 3, acquired: 1})
	s.at = s.at.Add(19 * time.Second)
	s.see(func(n *snapshot) { n.err, n.nodes[0].health = errors.New("too few nodes"), noAnswer })
	expect(moment{step: -2, waiting: 3, acquired: 1}, moment{waiting: -1, away: 1})
	s.see(func(n *snapshot) { n.broken = map[string]redlatch.Token{"job": 9} })
	expect(moment{step: -2, waiting: 3, acquired: 1}, moment{away: 1, lost: 1})
	snap := &snapshot{nodes: make([]nodeHealth, 3), pulse: &admin.Pulse{Need: 2}, trend: s.h.trend}
	for _, want := range []string{`at most 3</small>`, `>1 and 1</small>`, `"link" d="M57 3v-3h1v3z"/>`, `"known" d="M57 3v-3h1v3zM59 3v-3h1v3z"`} {
		if drawn := snap.trendText(); !strings.Contains(string(drawn), want) {
			t.Errorf("%q is not in %s", want, drawn)
		}
	}
	s.at = s.at.Add(585 * time.Second)
	s.see(with(waited(2)))
	expect(moment{step: -58, away: 1, lost: 1}, moment{waiting: 2})
	s.at = s.at.Add(-time.Hour)
	s.see(with())
	expect(moment{})
}
