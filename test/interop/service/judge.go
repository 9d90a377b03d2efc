//go:build unix

// Package service runs two services on one quorum, one with redsync and one
// with redlatch, while servers are killed and come back, and judges who held
// the lock when.
package service

import (
	"fmt"
	"slices"
	"time"
)

// hold is a time for which somebody relied on the lock: from the return of the
// call that gave it to the call that gave it back, or to the end of its
// validity by the client's own count if that came first.
type hold struct {
	side     string
	from, to time.Time
}

// Overlap is two who held the lock at the same time.
type Overlap struct {
	First, Second string
	For           time.Duration
}

func (o Overlap) String() string {
	return fmt.Sprintf("%s had the lock, and %s had it too, for %v", o.First, o.Second, o.For)
}

// judge returns the overlaps of holds.
func judge(holds []hold) []Overlap {
	holds = slices.Clone(holds)
	slices.SortFunc(holds, func(a, b hold) int { return a.from.Compare(b.from) })
	var found []Overlap
	var last hold // of those before, the one that stays longest
	for _, h := range holds {
		if h.from.Before(last.to) && h.to.After(h.from) {
			found = append(found, Overlap{last.side, h.side, earlier(last.to, h.to).Sub(h.from)})
		}
		if h.to.After(last.to) {
			last = h
		}
	}
	return found
}
