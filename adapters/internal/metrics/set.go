package metrics

import (
	"sync"
	"time"
)

// Item is something in progress: a caller that waits, or a lease that is held.
type Item struct {
	since time.Time
	limit time.Duration
}

// Set is what is in progress. The zero value is empty.
type Set struct {
	mu    sync.Mutex
	items map[*Item]bool
}

// Add notes that an item begins now. limit is how long it may last; 0 for no
// limit.
func (s *Set) Add(i *Item, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items[i] {
		return
	}
	if s.items == nil {
		s.items = map[*Item]bool{}
	}
	i.since, i.limit, s.items[i] = time.Now(), limit, true
}

// Remove notes that an item has ended. An item that has ended before is left
// alone.
func (s *Set) Remove(i *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, i)
}

// Len returns how many items are in progress.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Longest returns how long the oldest item has been in progress; 0 if there is
// none.
func (s *Set) Longest() (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.items {
		longest = max(longest, time.Since(i.since))
	}
	return longest
}

// Used returns the largest part of its limit that an item has used; 0 if no item
// has a limit.
func (s *Set) Used() (most float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.items {
		if i.limit > 0 {
			most = max(most, float64(time.Since(i.since))/float64(i.limit))
		}
	}
	return most
}
