//go:build unix

package chaos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/internal/test/exclusion"
)

// History is the record of a run: the input of the judge.
type History struct {
	Events   []Event          `json:"events"`
	Faults   []Fault          `json:"faults"`
	Rows     []Row            `json:"rows"`
	Counters map[string]int64 `json:"counters"`
	Fenced   bool             `json:"fenced"`
	Calm     bool             `json:"calm,omitempty"` // it was to have no faults

	Clients int              `json:"clients"`
	Names   int              `json:"names"`
	Healed  int64            `json:"healed"` // when the last fault was
	Live    []int            `json:"live"`   // the clients that got a lock after that
	Left    map[int][]string `json:"left"`   // by node: locks that were there after their TTL
}

// Lease is a lock that a client was granted, assembled from its events.
type Lease struct {
	exclusion.Lease
	Name     string
	Client   int
	Deadline int64   // as last known
	Broken   *Broken // by an operator; nil if it was not
	Extended []Span
	Refused  []int64 // when the resource refused it
}

// leases assembles the leases of a history, by name, in the order in which they
// were granted.
func (h *History) leases() map[string][]*Lease {
	open, asked, began := map[attemptID]*Lease{}, map[attemptID]int64{}, map[attemptID]int64{}
	byName := map[string][]*Lease{}
	for _, e := range h.Events {
		id := e.attempt()
		l := open[id]
		if e.Kind == Ask {
			asked[id] = e.At
			continue
		}
		if e.Kind == Got {
			l = &Lease{Name: e.Name, Client: e.Client, Lease: exclusion.Lease{
				Who: fmt.Sprintf("client %d.%d's lease %d", e.Client, e.Life, e.Seq), Share: e.Share, Token: e.Token, Asked: asked[id], Got: e.At, Until: -1}}
			if e.Keep > 0 {
				// It counts from some moment between the two, on clocks that may
				// be 1 % too fast.
				l.Kept = asked[id] + e.Keep - e.Keep/100
			}
			open[id] = l
			byName[e.Name] = append(byName[e.Name], l)
		}
		if l == nil {
			continue
		}
		if e.Deadline > 0 {
			l.Deadline = max(l.Deadline, e.Deadline)
		}
		switch e.Kind {
		case Extend:
			began[id] = e.At
		case Extended:
			if e.Err == "" {
				l.Extended = append(l.Extended, Span{began[id], e.At})
			}
		case Downgrade:
			l.Down = e.At
		case Release, Lost:
			if l.Until < 0 || e.At < l.Until {
				l.Until = e.At
			}
		case Refused:
			l.Refused = append(l.Refused, e.At)
		}
	}
	for _, leases := range byName {
		for _, l := range leases {
			if l.Until < 0 || l.Deadline < l.Until {
				l.Until = l.Deadline
			}
			h.breakOf(l)
		}
		slices.SortStableFunc(leases, func(a, b *Lease) int { return cmp.Compare(a.Got, b.Got) })
	}
	return byName
}

// breakOf ends a lease that an operator broke: the lock was not its own from then
// on, though its holder was not told.
func (h *History) breakOf(l *Lease) {
	for _, f := range h.Faults {
		for _, b := range f.Broken {
			if b.Name != l.Name || b.Token < l.Token {
				continue
			}
			l.Until, l.Kept = min(l.Until, b.From), min(l.Kept, b.From)
			if b.Sure && l.Broken == nil {
				l.Broken = &b
			}
		}
	}
}

// breakIn returns a fault by which an assumption was broken between two moments;
// nil if there is none.
func (h *History) breakIn(from, to int64) *Fault {
	for i, f := range h.Faults {
		if slices.ContainsFunc(f.Breaks, func(b Span) bool { return b.meets(from, to) }) {
			return &h.Faults[i]
		}
	}
	return nil
}
