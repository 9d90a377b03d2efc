package clockless

import (
	"cmp"
	"context"
	"slices"

	"github.com/redlatch/redlatch/store/casnode"
)

// Placed is a Store with timers that keeps the queues in places.
type Placed struct{ Timed }

// first returns the places of a name, or of all, in order, of processes that live.
func (s *Store) first(name string) (all []casnode.Place) {
	for _, p := range s.places {
		if (name == "" || p.Name == name) && s.Uptime() < s.lived[p.Process] {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b casnode.Place) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), cmp.Compare(a.Waiter, b.Waiter))
	})
	return all
}

func (s *Store) drop(p casnode.Place) {
	s.places = slices.DeleteFunc(s.places, func(x casnode.Place) bool { return x.Name == p.Name && x.Waiter == p.Waiter })
}

// Read returns the row of a name, with its first places.
func (s Placed) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	seen, err := s.Timed.Read(ctx, name)
	return s.see(seen, name, ""), err
}

// see adds the places to a snapshot.
func (s Placed) see(seen casnode.Snapshot, name, waiter string) casnode.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.first(name)
	seen.Rank = 1 + slices.IndexFunc(all, func(p casnode.Place) bool { return p.Waiter == waiter })
	seen.Places = slices.Clone(all[:min(len(all), casnode.FirstPlaces)])
	return seen
}

// Swap writes a row, and looks at the places after that.
func (s Placed) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	if done, _, err = s.Timed.Swap(ctx, seen, w); err == nil {
		present, err = s.Read(ctx, w.Row.Name)
	}
	return done, present, err
}

// Put stores a place. It leaves out what it may.
func (s Placed) Put(ctx context.Context, p casnode.Place, again bool) (casnode.Snapshot, error) {
	if err := s.unable(ctx); err != nil {
		return casnode.Snapshot{}, err
	}
	s.between()
	s.mu.Lock()
	if !slices.ContainsFunc(s.places, func(x casnode.Place) bool { return x.Name == p.Name && x.Waiter == p.Waiter }) {
		s.places = append(s.places, p)
	}
	s.mu.Unlock()
	seen, err := s.Timed.Read(ctx, p.Name)
	if seen = s.see(seen, p.Name, p.Waiter); !again {
		seen.Places, seen.Row.Timers = nil, nil
	}
	return seen, err
}

// Drop removes a place.
func (s Placed) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	if err := s.unable(ctx); err != nil {
		return casnode.Snapshot{}, err
	}
	s.between()
	s.mu.Lock()
	s.drop(p)
	s.mu.Unlock()
	return s.Read(ctx, p.Name)
}

// Evict removes the places of a process, or of all that do not live.
func (s Placed) Evict(ctx context.Context, name, process string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = slices.DeleteFunc(s.places, func(p casnode.Place) bool {
		return p.Name == name && p.Process == process || process == "" && s.Uptime() >= s.lived[p.Process]
	})
	return s.unable(ctx)
}

// Live extends the life of a process for a while.
func (s Placed) Live(ctx context.Context, process string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lived := s.Uptime() < s.lived[process]
	s.lived[process] = s.Uptime() + casnode.PlaceLease
	return lived, s.unable(ctx)
}

// Places returns the places of a name, or of all.
func (s Placed) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first(name), s.unable(ctx)
}
