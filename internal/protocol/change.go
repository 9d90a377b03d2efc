package protocol

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Change is a membership change: from a former membership, which may be in
// service, to ours.
//
//	            no membership would        no quorum of the former        all have
//	            outlive it                 one may serve                  answered
//	ReadingMarkers ───────────▶ Barring ───────────────▶ Looking ─▶ Replacing ─▶ Done
//	   │                           │                                    │
//	   └───────────────────────────┴──────▶ Refused ◀───────────────────┘
//
// It is safe because of this order: the quarantine begins only when no quorum of the
// former membership can grant or extend any more. So until then no node may be marked
// for the new membership either: a client that found such a node in service would mark
// the others. The change may be interrupted at any point.
//
// The new membership has a higher generation than the former. The same change, if it is
// run again, finds its own generation, and marks only what is missing.
type Change struct {
	// State is where it is, and Servers which it asks: each has to answer, or be silent.
	State   ChangeState
	Servers []int
	// Mine is what to mark with, and Least how long the quarantine has to be.
	Mine  node.Guard
	Least time.Duration
	Refusal

	fixed   Fixed
	servers []changing // the former ones, and then ours: one that is in both is there twice
	former  int
	waiting int // for so many answers
}

// ChangeState is where a membership change is.
type ChangeState uint8

// The states of a Change.
const (
	// ReadingMarkers: those of all are read, and which server each is.
	ReadingMarkers ChangeState = iota
	// Barring the former ones.
	Barring
	// Looking at the markers again of those that are to be marked.
	Looking
	// Replacing the markers that are not ours yet.
	Replacing
	// ChangeDone: the new membership is in service after the quarantine.
	ChangeDone
	// ChangeRefused, by the Refusal.
	ChangeRefused
)

// Refusal is why a change is refused.
type Refusal struct {
	Why ChangeRefusal
	// Server is the one that shows it: of WouldOutlive and OddOneOut.
	Server int
	// Of WouldOutlive: the membership, how many servers it has, and how many of them
	// the change ends. Of MayServe: how many may serve.
	Membership string
	Size, Ends int
	// Others is how long the others of OddOneOut are quarantined.
	Others time.Duration
}

// ChangeRefusal is the reason of a Refusal.
type ChangeRefusal uint8

// The reasons. Before the bar nothing was changed.
const (
	NotRefused ChangeRefusal = iota
	// FormerSilent: so many of the former ones do not answer that they may be a quorum.
	FormerSilent
	// NewSilent: one of ours does not answer.
	NewSilent
	// WouldOutlive: a membership would grant beside the new one.
	WouldOutlive
	// OddOneOut: one is quarantined far longer than all others. Its clock was wrong when
	// it was marked, and has been corrected. All would be quarantined that long.
	OddOneOut
	// MayServe: so many were not barred that they may be a quorum.
	MayServe
	// NotMarked: one of ours was not marked.
	NotMarked
)

// ChangeAnswer is what a server's marker says to a change, or that it did not answer.
type ChangeAnswer struct {
	Server int
	Silent bool
	// Differs says that it is marked for another membership, or barred.
	Differs bool
	MarkerState
	ID string // when read: which server it is; empty if that is not known
}

type changing struct {
	name string
	ChangeAnswer
}

// NewChange returns a change to mine. former and own are the names of servers, which
// have these numbers in this order.
func NewChange(mine node.Guard, fixed Fixed, former, own []string) Change {
	c := Change{Mine: mine, fixed: fixed, former: len(former)}
	for _, name := range slices.Concat(former, own) {
		c.servers = append(c.servers, changing{name: name})
	}
	c.ask(ReadingMarkers, Refusal{}, func(int, *changing) bool { return true })
	return c
}

// ask continues the change with the servers of which something is true, unless it is
// refused.
func (c *Change) ask(state ChangeState, r Refusal, is func(int, *changing) bool) {
	var servers []int
	for i := range c.servers {
		if r == (Refusal{}) && is(i, &c.servers[i]) {
			servers = append(servers, i)
		}
	}
	if c.State, c.Servers, c.waiting, c.Refusal = state, servers, len(servers), r; r != (Refusal{}) {
		c.State = ChangeRefused
	}
}

// Handle handles an answer. After the last one it goes on to the next state. A copy of
// the change stays as it is.
func (c *Change) Handle(a ChangeAnswer) {
	c.servers = slices.Clone(c.servers)
	s := &c.servers[a.Server]
	a.ID = cmp.Or(a.ID, s.ID)
	if a.Silent {
		a.Marked = s.Marked // it goes on granting to the membership of which it was
	}
	s.ChangeAnswer = a
	if c.waiting--; c.waiting > 0 {
		return
	}
	switch own := c.servers[c.former:]; c.State {
	case ReadingMarkers: // nothing is written if too few answer to finish it, or if it is wrong
		c.follow()
		c.ask(Barring, cmp.Or(c.tooFew(), c.outlived(), c.oddOneOut()), func(i int, s *changing) bool { return i < c.former && !s.Silent })
	case Barring:
		c.Least = max(c.Least, c.sitsOut())
		// Nodes of the former membership only are marked too, so that they can report the
		// new one to its clients.
		c.ask(Looking, cmp.Or(c.notBarred(), c.outlived()), func(i int, s *changing) bool {
			return i >= c.former || !s.Silent && !slices.ContainsFunc(own, func(o changing) bool { return o.name == s.name })
		})
	case Looking:
		looked := c.Servers
		c.ask(Replacing, Refusal{}, func(i int, s *changing) bool {
			return slices.Contains(looked, i) && !ReplacedMarker(c.Mine, s.MarkerState)
		})
	}
	if c.State == Replacing && c.waiting == 0 {
		var r Refusal
		if slices.ContainsFunc(c.servers[c.former:], func(s changing) bool { return s.Silent || s.Differs }) {
			r.Why = NotMarked
		}
		c.ask(ChangeDone, r, func(int, *changing) bool { return false })
	}
}

// tooFew refuses a change that could not be finished.
func (c *Change) tooFew() (r Refusal) {
	silent := func(s changing) bool { return s.Silent }
	switch {
	case c.among(silent) >= Quorum(c.former):
		r.Why = FormerSilent
	case slices.ContainsFunc(c.servers[c.former:], silent):
		r.Why = NewSilent
	}
	return r
}

// notBarred refuses to go on when former servers may still serve that are a quorum:
// they are neither barred nor marked for the new membership.
func (c *Change) notBarred() (r Refusal) {
	n := c.among(func(s changing) bool {
		ours := !s.Differs && (s.Trusted || s.Reason != "")
		return s.Silent || !ours && s.Reason != node.ReasonBarred
	})
	if n >= Quorum(c.former) {
		r.Why, r.Ends = MayServe, n
	}
	return r
}

// among returns of how many former servers something is true.
func (c *Change) among(is func(changing) bool) (n int) {
	for _, s := range c.servers[:c.former] {
		if is(s) {
			n++
		}
	}
	return n
}

// follow takes the parameters of the former membership, and the generation and the
// quarantine that follow from it.
func (c *Change) follow() {
	c.Mine.Quarantine = Quarantine(c.Mine.MaxTTL, c.Mine.Window, c.Mine.ReplicaLag)
	for _, s := range c.servers[:c.former] {
		if s.Marked != nil {
			c.Mine = Following(c.Mine, *s.Marked, c.fixed)
		}
	}
	c.Mine.Generation = c.generation()
	c.Least = c.sitsOut()
}

// generation returns the number of the new membership: that of a change to it
// which was begun before, or one above the highest.
func (c *Change) generation() uint64 {
	highest, begun := uint64(0), false
	for _, s := range c.servers {
		if s.Marked == nil || s.Marked.Generation < highest {
			continue
		}
		ours := s.Marked.Barred() && s.Marked.Nodes == c.Mine.Nodes || s.Marked.Agrees(&c.Mine)
		begun = ours && (begun || s.Marked.Generation > highest)
		highest = s.Marked.Generation
	}
	if begun {
		return highest
	}
	return highest + 1
}

// outlived refuses a change that a membership may outlive, so that it would grant
// beside the new one. It is called before the first write, and again after the bar.
//
// A server says by its marker of which membership it is a member, and a barred one
// of which it was. For each that is found so, in either list, those of its servers
// that are out of it must leave no quorum. Out of it are its members that are barred,
// or will be. A server without a marker counts if the membership names it. A server
// that does not answer does not count, nor does one that was only told.
func (c *Change) outlived() Refusal {
	for i, s := range c.servers {
		text, _ := memberOf(s.Marked)
		if text == "" || s.Marked.Agrees(&c.Mine) && s.Marked.Generation >= c.Mine.Generation {
			continue // of none, or of the new one
		}
		latest := uint64(0)
		for _, o := range c.servers {
			if other, in := memberOf(o.Marked); other == text {
				latest = max(latest, in)
			}
		}
		out := map[string]bool{} // by server: one with two names counts once
		for j, o := range c.servers {
			// A member that is in the new list is replaced, not barred. That is enough
			// if the membership stays the same.
			leaves := j < c.former || text == c.Mine.Nodes
			if o.ID != "" && o.isOut(text, latest, leaves) {
				out[o.ID] = true
			}
		}
		if size := membershipSize(text); size-len(out) >= Quorum(size) {
			return Refusal{Why: WouldOutlive, Server: i, Membership: text, Size: size, Ends: len(out)}
		}
	}
	return Refusal{}
}

// memberOf returns the text of the membership of which a server is a member, or was
// when it was barred, and a generation that it had; empty if of none.
func memberOf(g *node.Guard) (text string, generation uint64) {
	switch {
	case g == nil || g.Told:
		return "", 0
	case g.Barred():
		return g.From, g.Generation - 1
	default:
		return g.Nodes, g.Generation
	}
}

// isOut reports whether a server cannot serve a membership any more, whose highest
// generation that was seen is latest. leaves says that it will be barred if it is a
// member.
func (s *changing) isOut(text string, latest uint64, leaves bool) bool {
	_, _, isNamed := ParseNamed(text)
	listed := !isNamed && slices.Contains(strings.Fields(text), s.name)
	switch g := s.Marked; {
	case s.Silent:
		return false
	case g == nil:
		return leaves && listed
	case g.Barred() || g.Told || g.Nodes != text:
		// It is marked for something else since, as it says itself, or as its name and
		// a later generation say.
		return g.From == text || listed && (g.Barred() && g.From == "" || g.Generation > latest)
	}
	return leaves
}

// oddOneOut looks for a former server that is in quarantine far longer than all others.
func (c *Change) oddOneOut() Refusal {
	for i, s := range c.servers[:c.former] {
		var others time.Duration
		marked := 0
		for j, o := range c.servers[:c.former] {
			if i != j && o.Marked != nil {
				marked++
				others = max(others, o.Left, o.Marked.Quarantine)
			}
		}
		if marked >= 2 && s.Left > 2*others {
			return Refusal{Why: OddOneOut, Server: i, Others: others}
		}
	}
	return Refusal{}
}

// sitsOut returns how long the new membership has to be in quarantine after the former
// servers were in service. One without a marker does not know the former parameters.
func (c *Change) sitsOut() time.Duration {
	var longest time.Duration
	for _, s := range c.servers[:c.former] {
		longest = max(longest, s.Left)
		if s.Marked != nil {
			longest = max(longest, s.Marked.Quarantine)
		}
	}
	return longest
}
