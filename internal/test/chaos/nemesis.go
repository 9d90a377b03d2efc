//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// nemesis injects faults, drawn from a seed, and heals them.
type nemesis struct {
	in       *cluster
	nodes    []*node
	members  []*member
	bounds   bounds
	holders  func() map[int]bool // the clients that hold a lock now
	allowed  int                 // how many nodes may be faulty or quarantined at once
	families []Family
	rng      *rand.Rand
	least    time.Duration // between two faults
	most     time.Duration

	mu     sync.Mutex // guards which targets have a fault, how many there were, and nodes
	edge   bool       // a fault of all is under way
	faults []*Fault
}

// freeNode takes a node that the family can hit, without a fault. Unless the fault is
// mild, it takes none if so many have a fault or are quarantined that another
// would leave no quorum for too long.
func (w *nemesis) freeNode(rng *rand.Rand, f Family) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	allowed := w.allowed
	if rng.IntN(8) == 0 {
		allowed++ // occasionally a quorum is lost for a while
	}
	down := 0
	for _, n := range w.nodes {
		if n.struck || time.Now().Before(n.out) {
			down++
		}
	}
	if down >= allowed && !f.mild {
		return nil
	}
	for _, i := range rng.Perm(len(w.nodes)) {
		if n := w.nodes[i]; !n.struck && f.hits(n.kind) {
			n.struck = true
			return n
		}
	}
	return nil
}

// takeEdge reports that no fault of all is under way, and begins one.
func (w *nemesis) takeEdge() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := !w.edge
	w.edge = true
	return free
}

// freeMember takes a client without a fault; if asked for, one that holds a
// lock, if there is one.
func (w *nemesis) freeMember(rng *rand.Rand, holder bool) *member {
	holders := w.holders()
	w.mu.Lock()
	defer w.mu.Unlock()
	var free []*member
	for _, i := range rng.Perm(len(w.members)) {
		if m := w.members[i]; !m.struck {
			free = append(free, m)
		}
	}
	if len(free) == 0 || 2*len(free) <= len(w.members) && len(w.members) > 1 {
		return nil // half of them continue
	}
	found := free[0]
	if i := slices.IndexFunc(free, func(m *member) bool { return holders[m.number] }); holder && i >= 0 {
		found = free[i]
	}
	found.struck = true
	return found
}

// run injects faults until ctx ends, and returns when all are healed.
func (w *nemesis) run(ctx context.Context) {
	var healing sync.WaitGroup
	defer healing.Wait()
	if len(w.families) == 0 {
		<-ctx.Done()
	}
	var bag []Family
	for wait(ctx, between(w.rng, w.least, w.most)) {
		// Drawn from a bag, so that every family is used.
		if len(bag) == 0 {
			bag = slices.Clone(w.families)
			w.rng.Shuffle(len(bag), func(i, k int) { bag[i], bag[k] = bag[k], bag[i] })
		}
		for i, family := range slices.Concat(bag, w.families) {
			s := family.draw(w, w.rng)
			if s == nil {
				continue // it has no target now, and stays in the bag
			}
			if i < len(bag) {
				bag = slices.Delete(bag, i, i+1)
			}
			w.mu.Lock()
			w.faults = append(w.faults, s.fault)
			w.mu.Unlock()
			healing.Go(func() { w.strike(ctx, s) })
			break
		}
	}
}

// wait sleeps, and reports whether ctx is not done.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

// strike applies a fault, waits, and heals it. Then its target is free again.
func (w *nemesis) strike(ctx context.Context, s *strike) {
	f := s.fault
	err := s.apply(f)
	if err == nil && s.lasts > 0 {
		wait(ctx, s.lasts)
	}
	if s.heal != nil {
		// Also a fault that was applied in part.
		if healing := s.heal(f); err == nil {
			err = healing
		}
	}
	if f.To = now(); err != nil {
		f.Err = err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case s.member != nil:
		s.member.struck = false
		return
	case s.node == nil:
		w.edge = false
		return
	}
	s.node.struck = false
	if until := time.Now().Add(s.quarantine); until.After(s.node.out) {
		s.node.out = until
	}
}

// struck returns how many faults there were.
func (w *nemesis) struck() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.faults)
}

// history returns the faults, when all are healed. One that could not be
// injected or healed is an error.
func (w *nemesis) history() (all []Fault, err error) {
	for _, f := range w.faults {
		if f.Err != "" {
			return nil, fmt.Errorf("the run is worth nothing: the fault %s on %s: %s", f.Family, f.where(), f.Err)
		}
		all = append(all, *f)
	}
	return all, nil
}

func (f *Fault) where() string {
	if f.Node > 0 {
		return fmt.Sprintf("node %d", f.Node)
	}
	if f.Client > 0 {
		return fmt.Sprintf("client %d", f.Client)
	}
	return "all"
}
