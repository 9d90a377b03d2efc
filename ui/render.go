package ui

import (
	"cmp"
	"embed"
	"slices"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

// parts are the pieces of a page that may change: texts, and lists of rows, by
// the ids of their elements.
type parts struct {
	texts map[string]markup
	lists map[string]*rows
	seq   int // of the last event
}

// newParts returns what both pages have: a notice, how new it is, and events.
func newParts(s *snapshot, notice, fresh markup, events []event) *parts {
	p := &parts{texts: map[string]markup{}, lists: map[string]*rows{}}
	if len(s.lates) > 0 {
		p.seq = s.lates[0].seq
	}
	p.texts["notice"], p.texts["live"] = notice, fresh
	lately := p.list("lately")
	for i := range events {
		lately.add(events[i].id, events[i].row)
	}
	if len(events) == 0 {
		lately.add("lately-none", `<li id="lately-none" class="none">No events since recording started.</li>`)
	}
	return p
}

// list begins a list.
func (p *parts) list(id string) *rows {
	r := &rows{html: map[string]markup{}}
	p.lists[id] = r
	return r
}

// rows are the rows of a list, by their ids.
type rows struct {
	order []string
	html  map[string]markup
}

func (r *rows) add(id string, m markup) {
	if _, twice := r.html[id]; twice {
		return
	}
	r.order = append(r.order, id)
	r.html[id] = m
}

// orNone adds a row over all columns to an empty list, which says that there is
// nothing.
func (r *rows) orNone(list string, columns int, none markup) {
	if len(r.order) == 0 {
		r.add(list+"-none", fill(`<tr id="%-none"><td colspan="%" class="none">%</td></tr>`, list, columns, none))
	}
}

// all returns the rows as they are on the first view.
func (r *rows) all() markup {
	m := make([]markup, len(r.order))
	for i, id := range r.order {
		m[i] = r.html[id]
	}
	return join(m...)
}

// fixed returns what both pages have that does not change.
func (u *UI) fixed(s *snapshot, v view) map[string]markup {
	return map[string]markup{
		"title":  fill("%", u.opts.Title),
		"events": fill("%", "events"+v.query()),
		"now":    fill("%", time.Now().UnixMilli()),
		"asof":   either(s.at.IsZero(), "waiting for the nodes", s.asOfText()),
	}
}

// announcement says what has happened since an event, for readers who do not see
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
			said = append(said, visibleText(e.node)+": "+visibleText(e.text))
		case e.lock != "" && e.lock == v.lock:
			said = append(said, visibleText(e.text)+" "+visibleText(e.who))
		}
	}
	return strings.Join(said, ". ")
}

// message is what is sent to a viewer: what has changed.
type message struct {
	Now   int64               `json:"now"` // the server's clock
	Texts map[string]markup   `json:"texts,omitempty"`
	Lists map[string]listNews `json:"lists,omitempty"`
	Say   string              `json:"say,omitempty"` // for readers who do not see the page
}

// listNews is what has changed in a list.
type listNews struct {
	Order []string          `json:"order,omitempty"` // all rows, if they are others than before
	Rows  map[string]markup `json:"rows,omitempty"`
}

// diff returns what a viewer that has seen before is to be sent; nil for
// nothing.
func diff(before, now *parts, at time.Time) *message {
	m := &message{Now: at.UnixMilli(), Texts: map[string]markup{}, Lists: map[string]listNews{}}
	for id, text := range now.texts {
		if old, had := before.texts[id]; !had || old != text {
			m.Texts[id] = text
		}
	}
	for id, list := range now.lists {
		old := cmp.Or(before.lists[id], &rows{})
		news := listNews{Rows: map[string]markup{}}
		for _, row := range list.order {
			if before, had := old.html[row]; !had || before != list.html[row] {
				news.Rows[row] = list.html[row]
			}
		}
		if !slices.Equal(old.order, list.order) {
			news.Order = list.order
		}
		if len(news.Rows) > 0 || news.Order != nil {
			m.Lists[id] = news
		}
	}
	if len(m.Texts) == 0 && len(m.Lists) == 0 {
		return nil
	}
	return m
}

// parts renders what a view shows of a snapshot, for the viewers that follow it. All
// viewers of one view share it.
func (u *UI) parts(s *snapshot, v view) *parts {
	if v.lock != "" {
		s.detail(v.lock) // before the lock below: it asks the nodes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.made[v]
	switch {
	case p != nil:
	case v.lock != "":
		p = oneParts(s, s.details[v.lock], v, u.opts.BreakFlags, watch{})
	default:
		p = listParts(s, v, watch{})
	}
	s.made[v] = p
	return p
}
