package casnodetest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
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
			defer s.mu.Unlock()
			do()
			return s.snapshot(name)
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

// puts has a Put change the place, and store it if the change returns true.
func puts(change func(s *store, p *casnode.Place, again bool) bool) func(*store) {
	return func(s *store) {
		put := s.put
		s.put = func(s *store, p casnode.Place, again bool) {
			if change(s, &p, again) {
				put(s, p, again)
			}
		}
	}
}

// evicts has an Evict remove what a function says.
func evicts(gone func(s *store, p casnode.Place, name, process string) bool) func(*store) {
	return func(s *store) {
		s.evict = func(s *store, name, process string) {
			s.places = slices.DeleteFunc(s.places, func(p casnode.Place) bool { return gone(s, p, name, process) })
		}
	}
}

// inArrival has places be in the order in which they were put.
func inArrival(s *store) {
	s.first = ordered(func(p, q casnode.Place) int { return 0 }, living)
}

// living says whether the process of a place lives.
func living(s *store, p casnode.Place) bool { return s.lives(p.Process) }

// readsEarly has a store read before it writes: the places, or the row.
func readsEarly(places bool) func(s *store, name string, do func()) casnode.Snapshot {
	return func(s *store, name string, do func()) casnode.Snapshot {
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.snapshot(name)
		s.letOthersIn()
		do()
		after := s.snapshot(name)
		if places {
			after.Places = before.Places
		} else {
			after.Row = before.Row
		}
		return after
	}
}

const (
	inOrder   = "places are in the order in which they were put, for all clients"
	oneOrder  = "all clients see the same order, whoever came first"
	asPut     = "a place is stored as it was put, and is no row"
	oneDrop   = "Drop removes one place"
	withWrite = "a write drops the place that goes with it, if it is done"
	cross     = "of a waiter that comes or leaves and a write one sees the other"
	oneEvict  = "Evict removes the places of one process for one name"
	lifeEnds  = "the places of a process end with it"
)

var placeMutants = []mutant{
	{"a place that is put again moves", func(s *store) {
		inArrival(s)
		puts(func(s *store, p *casnode.Place, _ bool) bool { s.drop(s, *p); return true })(s)
	}, inOrder},
	{"a place that is put again is there twice", puts(func(s *store, p *casnode.Place, again bool) bool {
		if !again {
			s.places = append(s.places, *p)
		}
		return false
	}), inOrder},
	{"places are ordered by their waiters", func(s *store) {
		s.first = ordered(func(p, q casnode.Place) int { return strings.Compare(p.Waiter, q.Waiter) }, living)
	}, inOrder},
	{"places of all names are shown", func(s *store) {
		first := s.first
		s.first = func(s *store, _ string) []casnode.Place { return first(s, "") }
	}, inOrder},
	{"names of places end at a zero byte", func(s *store) {
		s.first = func(s *store, name string) []casnode.Place {
			return ordered(byTicket, func(_ *store, p casnode.Place) bool { return strings.TrimRight(p.Name, "\x00") == name })(s, "")
		}
	}, inOrder},
	{"the rank is counted from zero", func(s *store) { s.rank = func(index int) int { return index } }, inOrder},
	{"a Put shows what was before it", func(s *store) {
		s.act = func(s *store, name string, do func()) casnode.Snapshot {
			s.mu.Lock()
			defer s.mu.Unlock()
			defer do()
			return s.snapshot(name)
		}
	}, inOrder},
	{"places of one ticket have no order", func(s *store) {
		s.first = func(s *store, name string) []casnode.Place {
			slices.Reverse(s.places)
			return ordered(func(p, q casnode.Place) int { return cmp.Compare(p.Ticket, q.Ticket) }, living)(s, name)
		}
	}, oneOrder},
	{"places are in the order of arrival", inArrival, oneOrder},
	{"a list of places has another order than their beginning", func(s *store) {
		s.shown = ordered(func(p, q casnode.Place) int { return 0 }, living)
	}, oneOrder},
	{"names of places are cut off", puts(func(_ *store, p *casnode.Place, _ bool) bool {
		p.Name = p.Name[:min(255, len(p.Name))]
		return true
	}), asPut},
	{"waiters are cut off", puts(func(_ *store, p *casnode.Place, _ bool) bool {
		p.Waiter = p.Waiter[:min(255, len(p.Waiter))]
		return true
	}), asPut},
	{"a place is a row", puts(func(s *store, p *casnode.Place, _ bool) bool {
		s.rows[p.Name+"/"+p.Waiter] = row(p.Name+"/"+p.Waiter, "place")
		return true
	}), asPut},
	{"places of no name are listed for no name", func(s *store) {
		s.shown = ordered(byTicket, func(*store, casnode.Place) bool { return false })
	}, asPut},
	{"waiters are not case-sensitive", func(s *store) {
		s.one = func(p, q casnode.Place) bool { return p.Name == q.Name && strings.EqualFold(p.Waiter, q.Waiter) }
	}, oneDrop},
	{"Drop removes the waiter from all queues", func(s *store) {
		s.drop = func(s *store, p casnode.Place) {
			s.places = slices.DeleteFunc(s.places, func(q casnode.Place) bool { return p.Waiter == q.Waiter })
		}
	}, oneDrop},
	{"Drop removes nothing", func(s *store) { s.drop = func(*store, casnode.Place) {} }, oneDrop},
	{"a write drops no place", func(s *store) { s.drops = func(bool, casnode.Write) bool { return false } }, withWrite},
	{"a stamped write drops no place", func(s *store) {
		s.drops = func(done bool, w casnode.Write) bool { return done && !w.Stamped }
	}, withWrite},
	{"a write that is refused drops its place", func(s *store) { s.drops = func(bool, casnode.Write) bool { return true } }, withWrite},
	{"a write shows no places", func(s *store) {
		s.present = func(_ casnode.Snapshot, _ casnode.Write, _ bool, present casnode.Snapshot) casnode.Snapshot {
			present.Places = nil
			return present
		}
	}, withWrite},
	{"a write needs its place", func(s *store) {
		swap := s.same
		s.same = func(s *store, seen casnode.Snapshot, r casnode.Row) bool {
			return swap(s, seen, r) && (string(r.State) != "two" || len(s.places) > 1)
		}
	}, withWrite},
	{"Put reads the row before the place is there", func(s *store) { s.act = readsEarly(false) }, cross},
	{"Swap looks for places before the row is written", func(s *store) { s.act = readsEarly(true) }, cross},
	{"Evict removes the places of all processes", evicts(func(_ *store, p casnode.Place, name, _ string) bool { return p.Name == name }), oneEvict},
	{"Evict removes the places for all names", evicts(func(_ *store, p casnode.Place, _, process string) bool { return p.Process == process }), oneEvict},
	{"Evict removes nothing", evicts(func(*store, casnode.Place, string, string) bool { return false }), oneEvict},
	{"a place that was put before is not put again", puts(func(_ *store, _ *casnode.Place, again bool) bool { return !again }), oneEvict},
	{"the places of the dead are shown", func(s *store) {
		s.first = ordered(byTicket, func(*store, casnode.Place) bool { return true })
	}, lifeEnds},
	{"a process lives for a second", func(s *store) {
		s.live = func(s *store, process string) bool {
			lived := s.lives(process)
			s.lived[process] = s.clock().Add(time.Second)
			return lived
		}
	}, lifeEnds},
	{"who was dead is said to have lived", func(s *store) {
		live := s.live
		s.live = func(s *store, process string) bool { return live(s, process) || true }
	}, lifeEnds},
	{"the places of the dead come back", func(s *store) {
		evicts(func(_ *store, p casnode.Place, name, process string) bool {
			return p.Name == name && p.Process == process
		})(s)
	}, lifeEnds},
}
