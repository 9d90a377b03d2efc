package protocol

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is a membership change: from a former membership, which may be in
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
	state   ChangeState
	mine    node.Guard
	fixed   Fixed
	servers []changing // the former ones, and then ours: one that is in both is there twice
	former  int
	waiting int // for so many answers
	marks   []int
	least   time.Duration
}

// ChangeState is where a membership change is, and what it asks for.
type ChangeState uint8

// The states of a Change. From ReadingMarkers to Replacing it asks the servers that it names.
const (
	// Waiting for the other answers.
	Answering ChangeState = iota
	// ReadingMarkers: the markers of all are read, and which server each is.
	ReadingMarkers
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

// ChangeStep is what a change asks for: an answer of each of the servers.
type ChangeStep struct {
	State   ChangeState
	Servers []int
	// Mine is what to mark with, for Barring and Replacing, and Least how long the
	// quarantine has to be.
	Mine  node.Guard
	Least time.Duration
	Refusal
}

// Refusal is why a change is refused.
type Refusal struct {
	Why ChangeRefusal
	// Server is the one that shows it.
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

// NewChange returns a change to mine, and what it asks for first. former and own are
// the names of servers, which have these numbers in this order.
func NewChange(mine node.Guard, fixed Fixed, former, own []string) (Change, ChangeStep) {
	c := Change{mine: mine, fixed: fixed, former: len(former)}
	for _, name := range slices.Concat(former, own) {
		c.servers = append(c.servers, changing{name: name})
	}
	return c, c.ask(ReadingMarkers, c.where(func(int, *changing) bool { return true }))
}

// where returns the servers of which something is true.
func (c *Change) where(is func(int, *changing) bool) (list []int) {
	for i := range c.servers {
		if is(i, &c.servers[i]) {
			list = append(list, i)
		}
	}
	return list
}

// among returns the former ones of which something is true.
func (c *Change) among(is func(ChangeAnswer) bool) []int {
	return c.where(func(i int, s *changing) bool { return i < c.former && is(s.ChangeAnswer) })
}

// mayServe reports whether a server that was to be barred may still serve the former
// membership: it is neither barred nor marked for the new one.
func (s ChangeAnswer) mayServe() bool {
	ours := !s.Differs && (s.Trusted || s.Reason != "")
	return s.Silent || !ours && s.Reason != node.ReasonBarred
}

func (c *Change) ask(state ChangeState, servers []int) ChangeStep {
	c.state, c.waiting = state, len(servers)
	return ChangeStep{State: state, Servers: servers, Mine: c.mine, Least: c.least}
}

func (c *Change) refuse(r Refusal) ChangeStep {
	c.state = ChangeRefused
	return ChangeStep{State: ChangeRefused, Refusal: r}
}

// Handle handles an answer. After the last one it says what is next. A copy of the
// change stays as it is.
func (c *Change) Handle(a ChangeAnswer) ChangeStep {
	c.servers = slices.Clone(c.servers)
	s := &c.servers[a.Server]
	a.ID = cmp.Or(a.ID, s.ID)
	s.ChangeAnswer = a
	if c.waiting--; c.waiting > 0 {
		return ChangeStep{}
	}
	switch c.state {
	case ReadingMarkers:
		return c.read()
	case Barring:
		return c.barred()
	case Looking:
		return c.looked()
	}
	return c.replaced()
}

// read is called when all have been asked for their markers. It refuses if too few
// answer to finish the change, or if it is wrong: nothing is written then.
func (c *Change) read() ChangeStep {
	silent := func(a ChangeAnswer) bool { return a.Silent }
	if len(c.among(silent)) >= Quorum(c.former) {
		return c.refuse(Refusal{Why: FormerSilent})
	}
	if i := slices.IndexFunc(c.servers[c.former:], func(s changing) bool { return s.Silent }); i >= 0 {
		return c.refuse(Refusal{Why: NewSilent, Server: c.former + i})
	}
	c.mine.Quarantine = Quarantine(c.mine.MaxTTL, c.mine.Window, c.mine.ReplicaLag)
	for _, s := range c.servers[:c.former] {
		if s.Marked != nil {
			c.mine = Following(c.mine, *s.Marked, c.fixed)
		}
	}
	c.mine.Generation = c.generation()
	if r := c.outlived(); r.Why != NotRefused {
		return c.refuse(r)
	}
	if r := c.oddOneOut(); r.Why != NotRefused {
		return c.refuse(r)
	}
	c.least = c.sitsOut()
	return c.ask(Barring, c.among(func(a ChangeAnswer) bool { return !a.Silent }))
}

// barred is called when those that answered were asked to be barred.
func (c *Change) barred() ChangeStep {
	if n := len(c.among(ChangeAnswer.mayServe)); n >= Quorum(c.former) {
		return c.refuse(Refusal{Why: MayServe, Ends: n})
	}
	if r := c.outlived(); r.Why != NotRefused {
		return c.refuse(r)
	}
	c.least = max(c.least, c.sitsOut())
	// Nodes of the former membership only are marked too, so that they can report the
	// new one to its clients.
	c.marks = c.where(func(i int, s *changing) bool {
		named := func(o changing) bool { return o.name == s.name }
		return i >= c.former || !s.Silent && !slices.ContainsFunc(c.servers[c.former:], named)
	})
	return c.ask(Looking, c.marks)
}

// looked is called when all that are to be marked have been read again.
func (c *Change) looked() ChangeStep {
	missing := c.where(func(i int, s *changing) bool {
		return slices.Contains(c.marks, i) && !ReplacedMarker(c.mine, s.MarkerState)
	})
	if len(missing) == 0 {
		return c.replaced()
	}
	return c.ask(Replacing, missing)
}

// replaced is called when all have been marked, or did not answer.
func (c *Change) replaced() ChangeStep {
	if slices.ContainsFunc(c.servers[c.former:], func(s changing) bool { return s.Silent || s.Differs }) {
		return c.refuse(Refusal{Why: NotMarked})
	}
	return c.ask(ChangeDone, nil)
}

// generation returns the number of the new membership: that of a change to it
// which was begun before, or one above the highest.
func (c *Change) generation() uint64 {
	highest, begun := uint64(0), false
	for _, s := range c.servers {
		if s.Marked == nil || s.Marked.Generation < highest {
			continue
		}
		ours := s.Marked.Barred() && s.Marked.Nodes == c.mine.Nodes || s.Marked.Agrees(&c.mine)
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
		if text == "" || s.Marked.Agrees(&c.mine) && s.Marked.Generation >= c.mine.Generation {
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
			leaves := j < c.former || text == c.mine.Nodes
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
