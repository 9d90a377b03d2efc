package casnodetest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/node/casnode"
)

// placing is how a store keeps places. All functions but act are called with the mutex.
type placing struct {
	// act does something, and returns what Read returns after that.
	act   func(s *store, name string, do func()) casnode.Snapshot
	first func(s *store, name string) []casnode.Place
	one   func(p, q casnode.Place) bool // whether they are one
	put   func(s *store, p casnode.Place, again bool)
	drop  func(s *store, p casnode.Place)
	drops func(done bool, w casnode.Write) bool // whether a Swap does
	evict func(s *store, name, process string)
	live  func(s *store, process string) bool
	rank  func(index int) int
	shown func(s *store, name string) []casnode.Place // by Places
}

func inPlaces() placing {
	return placing{
		act: func(s *store, name string, do func()) casnode.Snapshot {
			s.mu.Lock()
			do()
			s.mu.Unlock()
			return s.read(s, name)
		},
		first: ordered(byTicket, living),
		one:   func(p, q casnode.Place) bool { return p.Name == q.Name && p.Waiter == q.Waiter },
		put: func(s *store, p casnode.Place, _ bool) {
			if !slices.ContainsFunc(s.places, func(q casnode.Place) bool { return s.one(p, q) }) {
				s.places = append(s.places, p)
			}
		},
		drop: func(s *store, p casnode.Place) {
			s.places = slices.DeleteFunc(s.places, func(q casnode.Place) bool { return s.one(p, q) })
		},
		drops: func(done bool, _ casnode.Write) bool { return done },
		evict: func(s *store, name, process string) {
			s.places = slices.DeleteFunc(s.places, func(p casnode.Place) bool {
				return p.Name == name && p.Process == process || process == "" && !s.lives(p.Process)
			})
		},
		live: func(s *store, process string) bool {
			lived := s.lives(process)
			s.lived[process] = s.clock().Add(casnode.PlaceLease)
			return lived
		},
		rank:  func(index int) int { return index + 1 },
		shown: func(s *store, name string) []casnode.Place { return s.first(s, name) },
	}
}

func byTicket(p, q casnode.Place) int {
	return cmp.Or(cmp.Compare(p.Ticket, q.Ticket), strings.Compare(p.Waiter, q.Waiter))
}

// ordered returns what returns the places of a name, or of all.
func ordered(order func(p, q casnode.Place) int, shown func(s *store, p casnode.Place) bool) func(s *store, name string) []casnode.Place {
	return func(s *store, name string) (all []casnode.Place) {
		for _, p := range s.places {
			if (name == "" || p.Name == name) && shown(s, p) {
				all = append(all, p)
			}
		}
		slices.SortStableFunc(all, order)
		return all
	}
}

func (s *store) lives(process string) bool { return s.clock().Before(s.lived[process]) }

func (s *store) Put(ctx context.Context, p casnode.Place, again bool) (seen casnode.Snapshot, err error) {
	if err := s.unable(s, ctx); err != nil {
		return seen, err
	}
	seen = s.act(s, p.Name, func() { s.put(s, p, again) })
	s.mu.Lock()
	defer s.mu.Unlock()
	seen.Rank = s.rank(slices.Index(s.first(s, p.Name), p))
	return seen, nil
}

func (s *store) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	if err := s.unable(s, ctx); err != nil {
		return casnode.Snapshot{}, err
	}
	return s.act(s, p.Name, func() { s.drop(s, p) }), nil
}

func (s *store) Evict(ctx context.Context, name, process string) error {
	if err := s.unable(s, ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evict(s, name, process)
	return nil
}

func (s *store) Live(ctx context.Context, process string) (bool, error) {
	if err := s.unable(s, ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live(s, process), nil
}

func (s *store) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	if err := s.unable(s, ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown(s, name), nil
}

// evicts has an Evict remove what a function says.
func evicts(gone func(s *store, p casnode.Place, name, process string) bool) func(*store) {
	return func(s *store) {
		s.evict = func(s *store, name, process string) {
			s.places = slices.DeleteFunc(s.places, func(p casnode.Place) bool { return gone(s, p, name, process) })
		}
	}
}

// living says whether the process of a place lives.
func living(s *store, p casnode.Place) bool { return s.lives(p.Process) }

var placeMutants = []mutant{}
