package ui

import (
	"strconv"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node/risk"
)

// This file is the page of all locks.

// listParts renders what may change on it.
func listParts(s *snapshot, v view, w watch) *parts {
	p := newParts(s, s.notice(), s.fresh(), s.lates)
	w.stale = s.err != nil
	nodes := p.list("nodes")
	for i := range s.nodes {
		nodes.add(w.nodeRow(i, &s.nodes[i]))
	}
	nodes.orNone("nodes", 3, "No node has answered yet.")
	found, locks := s.pick(v), p.list("locks")
	for _, l := range found.locks {
		locks.add(w.lockRow(l))
	}
	locks.orNone("locks", 7, either(v.q != "", "No matches.", either(s.err == nil, "No locks.", either(s.asOf.IsZero(), "Nothing is known yet.", fill("No locks, %.", s.asOfText())))))
	p.texts["summary"], p.texts["trend"] = s.summary(), s.trendText()
	p.texts["found"] = found.text(v, len(s.locks))
	p.texts["pager"] = found.pager(v)
	return p
}

// listFixed returns what else has a slot in it.
func (u *UI) listFixed(s *snapshot, v view) map[string]markup {
	fixed := u.fixed(s, v)
	fixed["query"] = fill("%", v.q)
	fixed["sorted"] = when(v.sort != byName, fill(`<input type="hidden" name="sort" value="%">`, string(v.sort)))
	fixed["need"] = fill("%", s.need())
	fixed["clocks"] = either(len(s.nodes) < 2, "this machine", "the median of the nodes")
	fixed["byname"] = v.column(byName, "ascending")
	fixed["byage"] = v.column(byAge, "descending")
	fixed["bywaiting"] = v.column(byWaiting, "descending")
	return fixed
}

// column returns the attributes of the head of a column, by which the list may
// be sorted, and the start of the link that sorts it.
func (v view) column(o order, way string) markup {
	sorted := when(v.sort == o, fill(` aria-sort="%"`, way))
	return fill(`%><a href="%">`, sorted, view{q: v.q, sort: o}.link())
}

func (s *snapshot) summary() markup {
	held, contended, waiting := s.counts()
	class, n := "fine", serving(s.nodes)
	switch {
	case n < s.need():
		class = "danger"
	case n < len(s.nodes):
		class = "warning"
	}
	counts := fill(`<span><b>%</b> held</span><span><b>%</b> contended</span><span><b>%</b> %</span>`,
		held, contended, waiting, either(waiting == 1, "waiter", "waiters"))
	if s.err != nil {
		counts = join(fill(`<span class="danger">%</span>`, s.asOfText()), when(!s.asOf.IsZero(), counts))
	}
	return join(counts, fill(`<span class="%"><b>% of %</b> nodes in service</span>`, class, n, len(s.nodes)))
}

// text says how many of all locks were found, and which of these are shown.
func (p *listing) text(v view, all int) markup {
	m := fill("%", count(all, "lock"))
	if v.q != "" {
		m = fill("% of % found", p.matches, count(all, "lock"))
	}
	m = join(m, when(p.pages > 1, fill(", % to % shown", p.first, p.first+len(p.locks)-1)))
	return join(m, when(v.q != "" && p.matches == 0,
		fill(`. <a href="%">Look at the lock % itself</a>: locks of other clients are not listed.`, view{lock: v.q}.link(), shown(v.q))))
}

// pager links to the pages before and after the one that is shown.
func (p *listing) pager(v view) markup {
	if p.pages < 2 {
		return ""
	}
	link := func(page int, rel, text string) markup {
		if page < 1 || page > p.pages {
			return fill(`<span class="no">%</span>`, text)
		}
		v.page = page
		return fill(`<a rel="%" href="%">%</a>`, rel, v.link(), text)
	}
	return join(link(p.page-1, "prev", "Previous"), fill(`<span>Page % of %</span>`, p.page, p.pages), link(p.page+1, "next", "Next"))
}

// lockRow returns the id and the row of a lock. data-mark differs when the
// holders differ. The roles keep it a table on small screens, where the style
// makes it none.
func (w watch) lockRow(l *lock) (string, markup) {
	held := l.state == admin.StateHeld && !w.stale
	if l.state == admin.StateHeld && w.stale {
		l = l.unknown()
	}
	holders := either(held, when(l.shared() != "", fill(`<span class="badge">%</span>`, l.shared())), badge(string(l.state)))
	since, until, token := nothing, nothing, nothing
	marks := []string{string(l.state)}
	for i := range l.holders {
		h := &l.holders[i]
		marks = append(marks, h.Owner, tokenText(h.Token))
		if i == 0 {
			since, until, token = w.ago(h.Since), w.ends(h.until, h.never()), number(h.Token)
		}
		if i < maxListed {
			slot := when(h.Slots > 0, fill(` <small>slot %</small>`, h.Slot))
			holders = join(holders, fill(`<span class="who">%%</span>`, h.who(), slot))
		}
	}
	return l.id, fill(`<tr id="%" role="row"% data-mark="%"><th scope="row" role="rowheader" class="name">%</th><td role="cell" class="holder">%%</td>`+
		`<td role="cell" class="num" data-label="held for">%</td><td role="cell" class="num" data-label="expires in">%</td>`+
		`<td role="cell" class="num waiting" data-label="waiting clients">%</td><td role="cell" class="num token">%</td><td role="cell" class="num votes">%/%</td></tr>`,
		l.id, when(w.stale, ` class="stale"`), idOf("m", marks...), lockLink(l.name), holders, more(len(l.holders)-maxListed), since, until,
		either(l.waiting > 0, fill(`<b class="warning">%</b>`, l.waiting), `<span class="no">0</span>`),
		token, l.naming, l.nodes)
}

// nodeRow returns the id and the row of a node.
func (w watch) nodeRow(i int, n *nodeHealth) (string, markup) {
	id, trip, ahead := "n"+strconv.Itoa(i), nothing, nothing
	if n.known {
		trip = fill("%", millis(n.pulse.RoundTrip))
		alarm := ""
		if n.clockAlarm > risk.Fine {
			alarm = n.clockAlarm.String()
		}
		ahead = fill(`<span class="%" title="give or take %">%</span>`, alarm, millis(n.pulse.ClockError), offset(n.clock))
		if n.pulse.Clockless {
			ahead = nothing
		}
	}
	rest := join(when(n.short != n.name, fill(`<small class="why">%</small>`, address(n.name))), when(!n.until.IsZero(), fill(` <small>for another %</small>`, w.left(n.until))),
		when(n.health != inService && n.until.IsZero(), fill(` <small>since %</small>`, clock(n.since))),
		when(n.why != "", fill(`<small class="why">%</small>`, address(n.why))))
	return id, fill(`<tr id="%" data-mark="%"><th scope="row"><span class="name">%</span> <span class="health %">%</span>%</th><td class="num">%</td><td class="num">%</td></tr>`,
		id, string(n.health), address(n.short), n.health.alarm(), string(n.health), rest, trip, ahead)
}

// alarm says how bad a health is.
func (h health) alarm() string {
	switch h {
	case inService:
		return "fine"
	case quarantined, unmarked, underserved:
		return "warning"
	}
	return "danger"
}

// offset is how far a clock is ahead, with a sign unless it is none.
func offset(d time.Duration) string {
	text := millis(d.Abs())
	switch {
	case text == millis(0):
		return text
	case d < 0:
		return "−" + text
	}
	return "+" + text
}
