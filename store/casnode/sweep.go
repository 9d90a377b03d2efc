package casnode

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// sweepEvery is how many writes come to one sweep, on average. sweepStep is how
// many rows it looks at. A name takes at least two writes, so the rows are walked
// three times as fast as they can become more.
const (
	sweepEvery = 64
	sweepStep  = 100
)

// sweepAfter is for how long a row has been of no use when it is removed: two
// servers of which one takes the other's place have clocks that differ.
const sweepAfter = time.Minute

// sweep is where the sweeps of this process have come to: a name, or the
// beginning.
type sweep struct {
	mu    sync.Mutex // held while a sweep runs
	begun bool
	at    string
	// unchanged are rows of a store without a clock that an earlier sweep has seen.
	unchanged map[string]seenRow
}

// mostSwept is how many rows of a store without a clock are remembered.
const mostSwept = 10_000

// sweepSometimes sweeps after a few of the writes. Another one will if it cannot.
func (n *Node) sweepSometimes(ctx context.Context, name string, seen Snapshot) {
	if rand.N(sweepEvery) == 0 {
		if n.queue.store != nil {
			_ = n.queue.store.Evict(ctx, "", "")
		}
		_ = n.sweep(ctx, name, seen)
	}
}

// sweep looks at some rows, and removes those that are of no use. seen is of a
// request for name.
func (n *Node) sweep(ctx context.Context, name string, seen Snapshot) (err error) {
	w := &n.swept
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	if !w.begun {
		w.begun, w.at = true, near(name)
	}
	w.at, err = n.sweepStep(ctx, w.at, seen)
	return err
}

// Sweep removes all rows that are of no use. A node removes some of them with its
// writes, so nobody has to call it.
func (n *Node) Sweep(ctx context.Context) error {
	n.swept.mu.Lock()
	defer n.swept.mu.Unlock()
	for at := ""; ; {
		seen, err := n.read(ctx, MarkerName)
		if err == nil {
			at, err = n.sweepStep(ctx, at, seen)
		}
		if err != nil || at == "" {
			return n.explain(err)
		}
	}
}

// sweepStep looks at the rows behind a name. It returns the last one, or "" if
// there are no more.
func (n *Node) sweepStep(ctx context.Context, after string, seen Snapshot) (last string, err error) {
	sweeper, can := n.store.(Sweeper)
	if !can {
		return "", nil
	}
	rows, err := n.scan(ctx, &seen, after, sweepStep)
	if err != nil {
		return after, err
	}
	var spent []Row
	for _, seen.Row = range rows {
		if over, fence := n.spent(&seen, len(rows) == sweepStep); over {
			spent, seen.Floor = append(spent, seen.Row), max(seen.Floor, fence)
		}
	}
	if len(rows) == sweepStep {
		last = rows[sweepStep-1].Name
	}
	if len(spent) > 0 {
		err = sweeper.Remove(ctx, seen, spent)
	}
	return last, err
}

// near returns where a process begins: anywhere among names like this one. A
// program that ends after one sweep must not always look at the same rows.
func near(name string) string {
	b := []byte(name)
	i := rand.N(len(b))
	b[i] = byte(max(0, int(b[i])+rand.N(21)-10))
	return string(b[:i+1])
}

// spent reports whether nothing in the row matters any more, and has not for a
// while. It returns the fence that is forgotten with it. many says that the store has
// many rows.
func (n *Node) spent(s *Snapshot, many bool) (bool, node.Token) {
	if s.by != nil {
		return n.swept.spent(s, many)
	}
	e, err := s.stored()
	if err != nil {
		return false, 0 // it is damaged, and stays
	}
	fence := e.Fence
	e.Settle(s.Now.Add(-sweepAfter))
	return e.Dead(), fence
}

// spent is for a store without a clock. What is left counts from when the row was first
// seen as it is. A row that has only a fence need not be seen for long: the floor has
// the fence then, which binds all the same. A few such rows stay, because the floor
// would raise the tokens of other names.
func (w *sweep) spent(s *Snapshot, many bool) (bool, node.Token) {
	seen, known := w.unchanged[s.Row.Name]
	if !known || seen.version != s.Row.Version {
		seen = seenRow{s.Row.Version, s.up}
	}
	if known || len(w.unchanged) < mostSwept {
		if w.unchanged == nil {
			w.unchanged = map[string]seenRow{}
		}
		w.unchanged[s.Row.Name] = seen
	}
	s.since = seen.since
	e, err := s.stored()
	if err != nil {
		return false, 0
	}
	fence := e.Fence
	if e.Settle(s.Now); !e.Dead() && !(many && e.FenceOnly()) {
		return false, 0
	}
	// A fence far ahead, by a clock that ran away, would raise all other tokens.
	if fence > node.Token(s.Now.Add(sweepAfter).UnixMicro()) {
		return false, 0
	}
	delete(w.unchanged, s.Row.Name)
	return true, fence
}
