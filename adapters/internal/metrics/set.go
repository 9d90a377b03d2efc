package metrics

import (
	"sync"
	"time"
)

// Item is something in progress: a caller that waits, or a lease that is held.
// It is part of what an observer keeps in a context, so that it costs no memory
// of its own.
type Item struct {
	since      time.Time
	limit      time.Duration
	prev, next *Item
	in         bool
}

// Set is what is in progress, the oldest first. The zero value is empty.
type Set struct {
	mu          sync.Mutex
	first, last *Item
	n           int
}

// Add notes that an item begins now. limit is how long it may last; 0 for no
// limit.
func (s *Set) Add(i *Item, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.in {
		return
	}
	i.since, i.limit, i.in = time.Now(), limit, true // under the mutex, so that the set is in order
	i.prev, i.next = s.last, nil
	if s.last == nil {
		s.first = i
	} else {
		s.last.next = i
	}
	s.last = i
	s.n++
}

// Remove notes that an item has ended. An item that has ended before is left
// alone.
func (s *Set) Remove(i *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !i.in {
		return
	}
	if i.prev == nil {
		s.first = i.next
	} else {
		i.prev.next = i.next
	}
	if i.next == nil {
		s.last = i.prev
	} else {
		i.next.prev = i.prev
	}
	i.prev, i.next, i.in = nil, nil, false
	s.n--
}

// Len returns how many items are in progress.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Longest returns how long the oldest item has been in progress; 0 if there is
// none.
func (s *Set) Longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return 0
	}
	return time.Since(s.first.since)
}

// Used returns the largest part of its limit that an item has used; 0 if no item
// has a limit.
func (s *Set) Used() (most float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := s.first; i != nil; i = i.next {
		if i.limit > 0 {
			most = max(most, float64(now.Sub(i.since))/float64(i.limit))
		}
	}
	return most
}
