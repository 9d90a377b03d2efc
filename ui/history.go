package ui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

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
	kindHeld  kind = "held"  // somebody got a lock
	kindFree  kind = "free"  // somebody no longer has it
	kindWorse kind = "worse" // a node is less well
	kindWell  kind = "well"  // a node is back
	kindNote  kind = "note"  // about the page itself
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
	last   time.Time
	known  map[string][]holder // the holders of every lock that is held
	nodes  map[string]health
}

// add remembers an event.
func (h *history) add(e event) {
	h.seq++
	e.seq, e.id = h.seq, "e"+strconv.Itoa(h.seq)
	e.row = e.render()
	// A new slice: snapshots have the former one.
	h.events = append([]event{e}, h.events[:min(len(h.events), maxEvents-1)]...)
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
	if s.err == nil { // else nothing is known about locks
		h.noteLocks(s, first)
	}
}

// noteNodes finds nodes that are better or worse than before.
func (h *history) noteNodes(s *snapshot) {
	if h.nodes == nil {
		h.nodes = map[string]health{}
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		before, known := h.nodes[n.name]
		if h.nodes[n.name] = n.health; before == n.health || !known && n.health == inService {
			continue
		}
		e := event{at: s.at, kind: kindWorse, node: n.name}
		switch n.health {
		case inService:
			e.kind, e.text = kindWell, "is back in service"
		case noAnswer:
			e.text = "does not answer"
		case quarantined:
			e.text = fmt.Sprintf("is quarantined for another %s (%s)", spell(n.until.Sub(s.at)), n.why)
		case refused:
			e.text = "refuses this client: " + n.why
		case unmarked:
			e.text = "is not marked"
		default:
			e.text = "has " + string(n.health) + ": " + n.why
		}
		h.add(e)
	}
}

// noteLocks finds locks with other holders than before.
func (h *history) noteLocks(s *snapshot, first bool) {
	now, listed := make(map[string][]holder, len(s.locks)), make(map[string]bool, len(s.locks))
	var found []event
	for i := range s.locks {
		l := &s.locks[i]
		listed[l.name] = true
		before := h.known[l.name]
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
			found = append(found, changes(l.name, before, now[l.name], s.at)...)
		}
	}
	for name, before := range h.known {
		if !listed[name] {
			found = append(found, changes(name, before, nil, s.at)...)
		}
	}
	h.known = now
	for _, e := range found[:min(len(found), maxAtOnce)] {
		h.add(e)
	}
	if more := len(found) - maxAtOnce; more > 0 {
		h.add(event{at: s.at, kind: kindNote, text: strconv.Itoa(more) + " more changes."})
	}
}

// changes returns what happened to one lock.
func changes(name string, before, now []holder, at time.Time) []event {
	var gone, come []event
	for i := range before {
		if h := &before[i]; !among(h, now) {
			e := event{at: at, kind: kindFree, lock: name, text: "released by", who: h.Owner}
			switch passed := !h.never() && !h.until.After(at); {
			case passed && h.overdue:
				e.text = "expired; it was held by"
			case passed: // it may have been extended, and released
				e.text = "no longer held by"
			}
			gone = append(gone, e)
		}
	}
	for i := range now {
		if h := &now[i]; !among(h, before) {
			text := "acquired by"
			if role := h.role(); role != "" {
				text = "acquired (" + role + ") by"
			}
			come = append(come, event{at: at, kind: kindHeld, lock: name, text: text, who: h.Owner})
		}
	}
	return append(gone, come...)
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
	for i := range all {
		if h.same(&all[i]) {
			return true
		}
	}
	return false
}
