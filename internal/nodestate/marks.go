package nodestate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Marks are the occurrences of a name that are done. The zero value remembers
// nothing.
type Marks struct {
	// Done has the occurrences, and until when each is remembered.
	Done map[string]time.Time
	// Since is when the node began to remember, and Until when it forgets that.
	Since, Until time.Time
}

func (m *Marks) clone() Marks {
	c := *m
	c.Done = maps.Clone(m.Done)
	return c
}

func (m *Marks) empty() bool { return m.Since.IsZero() && len(m.Done) == 0 }

// settle removes what has expired.
func (m *Marks) settle(now time.Time) {
	maps.DeleteFunc(m.Done, func(_ string, until time.Time) bool { return !until.After(now) })
	if !m.Until.After(now) {
		m.Since, m.Until = time.Time{}, time.Time{}
	}
}

// list adds the marks to a listing. They are settled.
func (m *Marks) list(l *node.Listing) {
	l.Since = m.Since
	for occurrence, until := range m.Done {
		l.Marks = append(l.Marks, node.DoneMark{Occurrence: occurrence, Until: until})
	}
	slices.SortFunc(l.Marks, func(a, b node.DoneMark) int {
		return cmp.Or(b.Until.Compare(a.Until), cmp.Compare(b.Occurrence, a.Occurrence))
	})
	l.Marks = l.Marks[:min(len(l.Marks), node.MaxMarks)]
}

// remember notes that an occurrence is done, and recall asks for that.
func (e *Entry) remember(req node.Request, now time.Time) node.Status {
	m := &e.Marks
	if m.Since.IsZero() {
		m.Since = now
	}
	m.Until = later(m.Until, now.Add(req.Retention))
	if req.Op == node.OpRemember {
		if m.Done == nil {
			m.Done = map[string]time.Time{}
		}
		m.Done[req.Occurrence] = later(m.Done[req.Occurrence], now.Add(req.Retention))
	}
	if _, done := m.Done[req.Occurrence]; done {
		return node.Granted
	}
	return node.Absent
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
