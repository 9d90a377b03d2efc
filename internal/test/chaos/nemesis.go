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

// world is the targets of faults.
type world struct {
	cluster *cluster
	members []*member
	bounds  bounds
	holders func() map[int]bool // the clients that hold a lock now

	mu      sync.Mutex // guards which targets have a fault
	allowed int        // how many nodes may be faulty or quarantined at once
}

// freeNode takes a node of one of the kinds without a fault. Unless the fault is
// mild, it takes none if so many have a fault or are quarantined that another
// would leave no quorum for too long.
func (w *world) freeNode(rng *rand.Rand, kinds []ServerKind, mild bool) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	allowed := w.allowed
	if rng.IntN(8) == 0 {
		allowed++ // occasionally a quorum is lost for a while
	}
	down := 0
	for _, n := range w.cluster.nodes {
		if n.struck || time.Now().Before(n.out) {
			down++
		}
	}
	if down >= allowed && !mild {
		return nil
	}
	for _, i := range rng.Perm(len(w.cluster.nodes)) {
		if n := w.cluster.nodes[i]; !n.struck && (kinds == nil || slices.Contains(kinds, n.kind)) {
			n.struck = true
			return n
		}
	}
	return nil
}

// freeMember takes a client without a fault; if asked for, one that holds a
// lock, if there is one.
func (w *world) freeMember(rng *rand.Rand, holder bool) *member {
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

// healed frees a target.
func (w *world) healed(s *strike) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.node != nil {
		s.node.struck = false
		if until := time.Now().Add(s.quarantine); until.After(s.node.out) {
			s.node.out = until
		}
	}
	if s.member != nil {
		s.member.struck = false
	}
}

// nemesis injects faults, drawn from a seed, and heals them.
type nemesis struct {
	world    *world
	families []Family
	rng      *rand.Rand
	least    time.Duration // between two faults
	most     time.Duration

	mu     sync.Mutex
	faults []*Fault
}

// run injects faults until ctx ends, and returns when all are healed.
func (n *nemesis) run(ctx context.Context) {
	var healing sync.WaitGroup
	defer healing.Wait()
	if len(n.families) == 0 {
		<-ctx.Done()
	}
	var bag []Family
	for wait(ctx, between(n.rng, n.least, n.most)) {
		// Drawn from a bag, so that every family is used.
		if len(bag) == 0 {
			for _, i := range n.rng.Perm(len(n.families)) {
				bag = append(bag, n.families[i])
			}
		}
		s, i := n.draw(bag)
		if s != nil {
			bag = append(bag[:i:i], bag[i+1:]...)
		} else if s, _ = n.draw(n.families); s == nil {
			continue // everything has a fault
		}
		f := n.begin(s)
		healing.Go(func() { n.strike(ctx, s, f) })
	}
}

// draw returns a fault of the first family that has a target, and which family
// that was. The other families stay in the bag.
func (n *nemesis) draw(families []Family) (*strike, int) {
	for i, family := range families {
		if s := family.draw(n.world, n.rng); s != nil {
			return s, i
		}
	}
	return nil, 0
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

func (n *nemesis) begin(s *strike) *Fault {
	f := &Fault{Family: s.family.Name, Beyond: s.family.Beyond, Detail: s.detail, Span: Span{From: now()}}
	if s.node != nil {
		f.Node = s.node.number
	}
	if s.member != nil {
		f.Client = s.member.number
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, f)
	return f
}

// strike applies a fault, waits, and heals it.
func (n *nemesis) strike(ctx context.Context, s *strike, f *Fault) {
	// Others read the fault while it lasts; it is written only at its end.
	own := *f
	err := s.apply(&own)
	if err == nil && s.lasts > 0 {
		wait(ctx, s.lasts)
	}
	if s.heal != nil {
		// Also a fault that was applied in part.
		if healing := s.heal(&own); err == nil {
			err = healing
		}
	}
	own.To = now()
	if err != nil {
		own.Err = err.Error()
	}
	n.world.healed(s)
	n.mu.Lock()
	defer n.mu.Unlock()
	*f = own
}

// snapshot returns copies of the faults so far.
func (n *nemesis) snapshot() (all []Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.faults {
		all = append(all, *f)
	}
	return all
}

// broken returns the faults that could not be injected or healed.
func broken(faults []Fault) error {
	for _, f := range faults {
		if f.Err != "" {
			return fmt.Errorf("the fault %s on %s: %s", f.Family, f.where(), f.Err)
		}
	}
	return nil
}

func (f *Fault) where() string {
	switch {
	case f.Node > 0:
		return fmt.Sprintf("node %d", f.Node)
	case f.Client > 0:
		return fmt.Sprintf("client %d", f.Client)
	}
	return "all"
}
