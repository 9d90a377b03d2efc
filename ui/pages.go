package ui

import (
	"fmt"
	"strings"
	"time"
)

// page is what both pages have.
type page struct {
	Title  string
	Events string // the address of the events
	At     *moment
	Now    int64
	// Problem says what is wrong with what is shown; empty for nothing.
	Problem string

	events []event
	last   int // the number of the last event, of all
}

// listPage is the page of all locks.
type listPage struct {
	page
	Locks   []lockRow
	Nodes   []nodeRow
	Serving int // nodes
	Need    int
	Clocks  string // what clocks are compared with

	All, Held, Waited, Waiting int // locks, of these held and waited for, and waiters

	Query          string
	Sort           string
	Matches        int
	First, Last    int
	Page, Pages    int
	Previous, Next string
}

// lockPage is the page of one lock.
type lockPage struct {
	page
	Lock *lockModel
}

// listPage returns the page of all locks.
func (u *UI) listPage(s *snapshot, v view, w watch) *listPage {
	p := &listPage{page: u.page(s, v, s.lates), Query: v.q, Sort: string(v.sort), All: len(s.locks)}
	for i := range s.locks {
		l := &s.locks[i]
		p.Waiting += l.waiting
		if l.waiting > 0 {
			p.Waited++
		}
		if l.state == "held" {
			p.Held++
		}
	}
	for i := range s.nodes {
		p.Nodes = append(p.Nodes, nodeRowOf(i, &s.nodes[i], w))
	}
	p.Serving = serving(s.nodes)
	if p.Clocks = "the median of the nodes"; len(s.nodes) < 2 {
		p.Clocks = "this machine"
	}
	if s.pulse != nil {
		p.Need = s.pulse.Need
	}
	found := s.pick(v)
	for _, l := range found.locks {
		p.Locks = append(p.Locks, lockRowOf(l, w))
	}
	p.Matches, p.First, p.Last = found.matches, found.first, found.first+len(found.locks)-1
	p.Page, p.Pages = found.page, found.pages
	at := func(page int) string { next := v; next.page = page; return next.link() }
	if found.page > 1 {
		p.Previous = at(found.page - 1)
	}
	if found.page < found.pages {
		p.Next = at(found.page + 1)
	}
	return p
}

// lockPage returns the page of one lock.
func (u *UI) lockPage(s *snapshot, d *detail, v view, w watch) *lockPage {
	var about []event
	for _, e := range s.lates {
		if e.lock == v.lock {
			about = append(about, e)
		}
	}
	p := &lockPage{page: u.page(s, v, about), Lock: lockModelOf(v.lock, d, u.opts.BreakFlags, w)}
	if p.Lock.Err != "" {
		p.Problem = p.Lock.Err
	}
	return p
}

// page returns what both pages have.
func (u *UI) page(s *snapshot, v view, events []event) page {
	p := page{Title: u.opts.Title, Events: "events" + v.query(), Now: time.Now().UnixMilli(), events: events}
	if len(s.lates) > 0 {
		p.last = s.lates[0].seq
	}
	switch {
	case s.at.IsZero():
		p.Problem = "The nodes have not answered yet."
	default:
		p.At = &moment{at: s.at}
		p.Problem = s.problem()
	}
	return p
}

// problem says what is wrong with what a snapshot shows; empty for nothing.
func (s *snapshot) problem() string {
	answer := 0
	for i := range s.nodes {
		if s.nodes[i].health != noAnswer {
			answer++
		}
	}
	switch {
	case s.err != nil && s.pulse != nil && answer < s.pulse.Need:
		return fmt.Sprintf("%d of %s reachable; quorum is %d. Locks are unavailable, and this page may be incomplete.", answer, count(len(s.nodes), "node"), s.pulse.Need)
	case s.err != nil:
		return errorText(s.err)
	}
	if n := serving(s.nodes); s.pulse != nil && n < s.pulse.Need {
		return fmt.Sprintf("%d of %s in service; quorum is %d. Locks are unavailable.", n, count(len(s.nodes), "node"), s.pulse.Need)
	}
	return ""
}

// announcement says what has happened since an event, for those who do not see
// the page: changes of nodes, and of the lock that is looked at.
func announcement(s *snapshot, v view, since int) string {
	var said []string
	for i := range s.lates {
		e := &s.lates[i]
		if e.seq <= since || len(said) == 3 {
			break
		}
		switch {
		case e.node != "":
			said = append(said, visibleText(e.node)+" "+visibleText(e.text))
		case e.lock != "" && e.lock == v.lock:
			said = append(said, visibleText(e.text)+" "+visibleText(e.who))
		}
	}
	return strings.Join(said, ". ")
}
