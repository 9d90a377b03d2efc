package ui

import (
	"embed"
	"slices"
	"time"
)

//go:embed assets
var assets embed.FS

// parts are the pieces of a page that may change: texts, and lists of rows, by
// the ids of their elements.
type parts struct {
	texts map[string]markup
	lists map[string]rows
	seq   int // of the last event
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

// all returns the rows as they are on the first view.
func (r *rows) all() markup {
	m := make([]markup, len(r.order))
	for i, id := range r.order {
		m[i] = r.html[id]
	}
	return join(m...)
}

// row is a row of a list.
type row[T any] interface {
	*T
	id() string
	row() markup
}

// rowsOf renders the rows of a list, or one that says that there is none.
// columns is the number of columns.
func rowsOf[T any, R row[T]](list string, all []T, columns int, none string) rows {
	r := rows{html: map[string]markup{}}
	for i := range all {
		r.add(R(&all[i]).id(), R(&all[i]).row())
	}
	if len(all) == 0 {
		id := list + "-none"
		r.add(id, fill(`<tr id="%"><td colspan="%" class="none">%</td></tr>`, id, columns, none))
	}
	return r
}

func (r *lockRow) id() string   { return r.ID }
func (r *nodeRow) id() string   { return r.ID }
func (r *holderRow) id() string { return r.ID }
func (r *waiterRow) id() string { return r.ID }
func (r *answerRow) id() string { return r.ID }

// message is what is sent to a viewer: what has changed.
type message struct {
	Now   int64               `json:"now"` // the server's clock
	Texts map[string]markup   `json:"texts,omitempty"`
	Lists map[string]listNews `json:"lists,omitempty"`
	Say   string              `json:"say,omitempty"` // for those who do not see the page
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
		old := before.lists[id]
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

// parts renders what a view shows of a snapshot, for those who follow it. All
// viewers of one view share it.
func (u *UI) parts(s *snapshot, v view) *parts {
	if v.lock != "" {
		s.detail(v.lock) // before the lock below: it asks the nodes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.made[v]; p != nil {
		return p
	}
	w := watch{now: s.at, live: true}
	var p *parts
	if v.lock != "" {
		p = u.lockPage(s, s.details[v.lock], v, w).parts()
	} else {
		p = u.listPage(s, v, w).parts()
	}
	s.made[v] = p
	return p
}

// parts renders the list of locks.
func (p *listPage) parts() *parts {
	return &parts{seq: p.seq(),
		texts: map[string]markup{"summary": p.summary(), "problem": p.problem(), "found": p.found(), "pager": p.pager()},
		lists: map[string]rows{
			"nodes":  rowsOf("nodes", p.Nodes, 3, "No node has answered yet."),
			"locks":  rowsOf("locks", p.Locks, 7, p.noLocks()),
			"lately": p.lately(),
		},
	}
}

// noLocks says why the list is empty.
func (p *listPage) noLocks() string {
	if p.Query != "" {
		return "No matches."
	}
	return "No locks."
}

// parts renders one lock.
func (p *lockPage) parts() *parts {
	return &parts{seq: p.seq(),
		texts: map[string]markup{"problem": p.problem(), "state": p.state(), "queue": p.queue(), "completed": p.completed(), "command": p.command()},
		lists: map[string]rows{
			"holders": rowsOf("holders", p.Lock.Holders, 5, "Not held."),
			"waiters": rowsOf("waiters", p.Lock.Waiters, 5, "No waiters."),
			"answers": rowsOf("answers", p.Lock.Answers, 6, "No node has answered."),
			"lately":  p.lately(),
		},
	}
}

// lately are the events, which were rendered when they happened.
func (p *page) lately() rows {
	r := rows{html: map[string]markup{}}
	for i := range p.events {
		r.add(p.events[i].id, p.events[i].row)
	}
	if len(p.events) == 0 {
		r.add("lately-none", `<li id="lately-none" class="none">No events since recording started.</li>`)
	}
	return r
}

// seq is the number of the last event.
func (p *page) seq() int { return p.last }
