package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

// event is something that happened between two surveys.
type event struct {
	seq  int
	at   time.Time
	kind kind
	lock string // the lock that it is about; empty for none
	node string // the node that it is about; empty for none
	text string // what happened, before who
	who  string // the owner; empty for none
	id   string // of its row
	row  markup
}

// kind is a sort of event.
type kind string

// The kinds of events.
const (
	kindHeld    kind = "held"    // somebody got a lock
	kindFree    kind = "free"    // somebody no longer has it: it was released, or nobody knows why
	kindExpired kind = "expired" // it was not extended in time
	kindBroken  kind = "broken"  // an operator took it away
	kindForgot  kind = "forgot"  // nodes have lost it
	kindWorse   kind = "worse"   // a node is less well
	kindWell    kind = "well"    // a node is back
	kindNote    kind = "note"    // about the page itself
)

const (
	// maxEvents is how many events are remembered.
	maxEvents = 200
	// maxAtOnce is how many events about locks one survey adds: more would
	// leave nothing of those before.
	maxAtOnce = 50
)

// history finds what happened by comparing surveys.
type history struct {
	seq    int
	events []event // the last first
	trend  []moment
	last   time.Time
	known  map[string][]holder // the holders of every lock that is held
	broken map[string]redlatch.Token
	nodes  map[string]nodeHealth
}

// add remembers an event.
func (h *history) add(e event) {
	h.seq++
	e.seq, e.id = h.seq, "e"+strconv.Itoa(h.seq)
	e.row = e.render()
	// A new slice: snapshots have the former one.
	h.events = append([]event{e}, h.events[:min(len(h.events), maxEvents-1)]...)
}

// addNode remembers an event of a node, in one with others of which the same was found.
func (h *history) addNode(e event) {
	if len(h.events) > 0 && h.events[0].at.Equal(e.at) && h.events[0].node != "" && h.events[0].text == e.text {
		e.node, h.events = h.events[0].node+", "+e.node, h.events[1:]
	}
	h.add(e)
}

// note takes a survey into account. usual is the usual time from the one before
// to it.
func (h *history) note(s *snapshot, usual time.Duration) {
	first := h.last.IsZero()
	if gap := s.at.Sub(h.last) - s.took; !first && gap > 3*usual+2*time.Second {
		h.add(event{at: s.at, kind: kindNote, text: fmt.Sprintf("Not recording for %s; times are approximate.", spell(gap))})
	}
	h.last = s.at
	if first {
		h.add(event{at: s.at, kind: kindNote, text: "Recording started."})
	}
	h.noteNodes(s)
	var found []event
	if s.err == nil { // else nothing is known about locks
		found = h.noteLocks(s, first)
	}
	h.measure(s, found)
}

// noteNodes finds nodes that are better or worse than before.
func (h *history) noteNodes(s *snapshot) {
	if h.nodes == nil {
		h.nodes = map[string]nodeHealth{}
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		before, known := h.nodes[n.name]
		if n.since = before.since; before.health != n.health {
			n.since = s.at.Add(-s.took)
		}
		if h.nodes[n.name] = *n; before.health == n.health || !known && n.health == inService {
			continue
		}
		e := event{at: s.at, kind: kindWorse, node: n.short, text: string(n.health)}
		switch n.health {
		case inService:
			e.kind, e.text = kindWell, "back in service"
		case quarantined:
			e.text = fmt.Sprintf("quarantined for another %s (%s)", spell(n.until.Sub(s.at)), n.why)
		case refused, underserved:
			e.text += ": " + n.why
		}
		h.addNode(e)
	}
}

// noteLocks finds locks with other holders than before.
func (h *history) noteLocks(s *snapshot, first bool) (found []event) {
	now, listed := make(map[string][]holder, len(s.locks)), make(map[string]bool, len(s.locks))
	forgot := make([]int, len(s.nodes))
	for i := range s.locks {
		l := &s.locks[i]
		listed[l.name] = true
		before := h.known[l.name]
		s.forgotten(before, l, forgot)
		switch l.state {
		case admin.StateHeld:
			now[l.name] = extended(before, l.holders, s.at)
		case admin.StateUnknown, admin.StateSplit:
			if len(before) > 0 {
				now[l.name] = before // it may be held still
			}
			continue
		}
		if !first {
			found = append(found, h.changes(l.name, before, now[l.name], s)...)
		}
	}
	for name, before := range h.known {
		if !listed[name] {
			found = append(found, h.changes(name, before, nil, s)...)
		}
	}
	h.known, h.broken = now, s.broken
	for i, n := range forgot {
		if n > 0 {
			h.addNode(event{at: s.at, kind: kindWorse, node: s.nodes[i].short, text: "forgot " + count(n, "lock")})
		}
	}
	for _, e := range found[:min(len(found), maxAtOnce)] {
		h.add(e)
	}
	if more := len(found) - maxAtOnce; more > 0 {
		h.add(event{at: s.at, kind: kindNote, text: strconv.Itoa(more) + " more changes."})
	}
	return found
}

// forgotten counts the nodes that have lost a lock which others still have: before
// its expiry there, and without a release.
func (s *snapshot) forgotten(before []holder, l *lock, forgot []int) {
	if len(before) == 0 || len(l.holders) == 0 || !before[0].same(&l.holders[0]) {
		return
	}
	for i, until := range before[0].on {
		switch now := &l.holders[0].on[i]; {
		case s.nodes[i].health == noAnswer:
			*now = until // it may have it still
		case now.IsZero() && until.Sub(s.at) > sameExpiry:
			forgot[i]++
			before[0].on[i] = time.Time{} // once
		}
	}
}

// vanished returns the locks whose holders are gone before their time, as many as
// are noted. Why they are gone takes a closer look.
func (h *history) vanished(s *snapshot) []string {
	if s.err != nil {
		return nil
	}
	var names []string
	for name, before := range h.known {
		l := s.lock(name)
		if l != nil && (l.state == admin.StateUnknown || l.state == admin.StateSplit) {
			continue
		}
		var now []holder
		if l != nil {
			now = l.holders
		}
		if slices.ContainsFunc(before, func(b holder) bool { return !b.passed(s.at) && !among(&b, now) }) && len(names) < maxAtOnce {
			names = append(names, name)
		}
	}
	return names
}

// passed reports whether the time of a holder is over.
func (h *holder) passed(at time.Time) bool { return !h.never() && !h.until.After(at) }

// changes returns what happened to one lock.
func (h *history) changes(name string, before, now []holder, s *snapshot) []event {
	var gone, come []event
	for i := range before {
		b := &before[i]
		if among(b, now) {
			continue
		}
		e := event{at: s.at, kind: kindFree, lock: name, text: "released by", who: b.Owner}
		lost := s.forgetful(b, s.gone[name])
		switch {
		case s.broken[name] > max(b.Token, h.broken[name]):
			e.kind, e.text = kindBroken, "broken; it was held by"
		case b.passed(s.at) && b.overdue:
			e.kind, e.text = kindExpired, "expired; it was held by"
		case b.passed(s.at): // it may have been extended, and released
			e.text = "no longer held by"
		case lost != "":
			e.kind, e.text = kindForgot, "forgotten by "+lost+"; it was held by"
		}
		gone = append(gone, e)
	}
	for i := range now {
		if b := &now[i]; !among(b, before) {
			text := "acquired by"
			if role := b.role(); role != "" {
				text = "acquired (" + role + ") by"
			}
			come = append(come, event{at: s.at, kind: kindHeld, lock: name, text: text, who: b.Owner})
		}
	}
	return append(gone, come...)
}

// forgetful names the nodes that have forgotten a holder which is gone; empty if
// one of them let it go: that one remembers the token.
func (s *snapshot) forgetful(h *holder, gone *admin.LockState) string {
	var lost []string
	for i, until := range h.on {
		switch {
		case gone == nil || h.Token == 0 || until.IsZero() || gone.Nodes[i].Err != nil:
		case gone.Nodes[i].Reply.Fence >= h.Token:
			return ""
		default:
			lost = append(lost, s.nodes[i].short)
		}
	}
	return strings.Join(lost, ", ")
}

// extended returns the holders with what is known of their extensions.
func extended(before, now []holder, at time.Time) []holder {
	now = slices.Clone(now)
	for i := range now {
		h := &now[i]
		h.extended = at
		for j := range before {
			if b := &before[j]; b.same(h) && h.until.Sub(b.until).Abs() < sameExpiry {
				h.extended = b.extended
			}
		}
		// A living holder extends after a third of the TTL.
		h.overdue = h.until.Sub(at) < at.Sub(h.extended)
	}
	return now
}

// sameExpiry is by how much two surveys may differ about one expiry.
const sameExpiry = 200 * time.Millisecond

// among reports whether a holder is in a list.
func among(h *holder, all []holder) bool {
	return slices.ContainsFunc(all, func(other holder) bool { return h.same(&other) })
}
