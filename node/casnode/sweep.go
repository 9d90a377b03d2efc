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
}

// sweepSometimes sweeps after a few of the writes. Another one will if it cannot.
func (n *Node) sweepSometimes(ctx context.Context, name string, seen Snapshot) {
	if rand.N(sweepEvery) == 0 {
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
	rows, err := n.store.Scan(ctx, after, sweepStep)
	if err != nil {
		return after, err
	}
	var spent []Row
	for _, seen.Row = range rows {
		if over, fence := seen.spent(); over {
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
// while. It returns the fence that is forgotten with it.
func (s *Snapshot) spent() (bool, node.Token) {
	e, err := s.Row.entry()
	if err != nil {
		return false, 0 // it is damaged, and stays
	}
	e.Move(s.Offset)
	fence := e.Fence
	e.Settle(s.Now.Add(-sweepAfter))
	return e.Dead(), fence
}
