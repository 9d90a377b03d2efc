package runner_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	store "github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
)

// mixed is servers of which the first have no clock.
type mixed struct {
	shelves []*store.Shelf
	others  []*memory.Node
}

func newMixed(all, observed int) *mixed {
	m := &mixed{}
	for i := range all {
		if i < observed {
			m.shelves = append(m.shelves, store.New(nil))
		} else {
			m.others = append(m.others, memory.New(&memory.Options{Name: strconv.Itoa(i)}))
		}
	}
	return m
}

// client returns a client on a machine whose wall clock is off. If it is early, it
// learns the time from the answers to its first request, which come late.
func (m *mixed) client(t *testing.T, off time.Duration, early bool, opts redlatch.Options) *redlatch.Client {
	var nodes []redlatch.Node
	for _, s := range m.shelves {
		start, asked := time.Now(), false
		nodes = append(nodes, casnode.New(store.Timed{Store: s.Open()}, &casnode.Options{Uptime: func() time.Duration {
			if !asked { // it compares this with the wall clock, which is off
				asked = true
				return time.Since(start) - off
			}
			return time.Since(start)
		}}))
	}
	for _, n := range m.others {
		if early {
			l := locktest.NewLink(t, n)
			l.Out = 5 * time.Millisecond
			nodes = append(nodes, clockless{l})
		} else {
			nodes = append(nodes, n)
		}
	}
	return locktest.NewClient(t, nodes, locktest.WithClock(opts, offClock{time.Now(), off}))
}

// refusals counts how nodes answer requests for a lock.
type refusals struct {
	mu  sync.Mutex
	all map[node.Status]int
}

func (r *refusals) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }
func (r *refusals) LockEnd(context.Context, observe.LockEnd)                           {}
func (r *refusals) NodeChange(observe.NodeHealth)                                      {}
func (r *refusals) NodeEnd(e observe.NodeEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Op == node.OpAcquire {
		r.all[e.Status]++
	}
}

// counts returns a copy, and reset begins anew.
func (r *refusals) counts() map[node.Status]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.all)
}

func (r *refusals) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.all)
}

// TestNoNodeRefusesTokensBecauseOfAWrongClientClock has clients take turns whose wall
// clocks are hours apart, where some of the nodes have no clock, or none has one.
func TestNoNodeRefusesTokensBecauseOfAWrongClientClock(t *testing.T) {
	for _, c := range []struct {
		all, observed int
		early         bool
	}{{3, 1, false}, {3, 2, false}, {5, 2, false}, {1, 1, false}, {3, 3, false}, {2, 1, true}, {3, 1, true}, {5, 2, true}} {
		synctest.Test(t, func(t *testing.T) {
			m, seen := newMixed(c.all, c.observed), &refusals{all: map[node.Status]int{}}
			var clients []*redlatch.Client
			for _, off := range []time.Duration{3 * time.Hour, 0, -3 * time.Hour, time.Hour} {
				clients = append(clients, m.client(t, off, c.early, redlatch.Options{Observer: seen, AssumeFresh: true}))
			}
			last := redlatch.Token(0)
			for i := range 20 {
				l, err := clients[i%len(clients)].TryLock(t.Context(), "job", nil)
				must(t, err)
				if l.Token() <= last {
					t.Errorf("%+v: token %d after %d", c, l.Token(), last)
				}
				last = l.Token()
				time.Sleep(time.Second) // all nodes have answered
				if c.early && i < len(clients) {
					seen.reset() // each has learned the time by its first lock
				}
				must(t, l.Release(t.Context()))
				time.Sleep(time.Second)
			}
			for i, h := range clients[0].Nodes() {
				if h.ClockKnown != (i >= c.observed) {
					t.Errorf("%+v: node %d shows a clock: %v", c, i, h.ClockKnown)
				}
			}
			counts := seen.counts()
			if c.observed == c.all {
				// The first client's token is ahead of the others' clocks.
				if counts[node.Behind]+counts[node.Ahead] > 0 {
					t.Errorf("no node has a clock: %v", counts)
				}
				return
			}
			turns := 20
			if c.early {
				turns -= len(clients)
			}
			if counts[node.Granted] != turns*c.all || len(counts) > 1 {
				t.Errorf("%+v: %v; want all granted", c, counts)
			}
			if off := time.Until(time.UnixMicro(int64(last))).Abs(); off > time.Minute {
				t.Errorf("%+v: the last token is %v off", c, off)
			}
		})
	}
}

// TestWaitersOnNodesWithoutAClockTakeTurns has waiters contend whose wall clocks are
// hours apart.
func TestWaitersOnNodesWithoutAClockTakeTurns(t *testing.T) {
	for _, c := range []struct{ all, observed int }{{3, 1}, {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMixed(c.all, c.observed)
			var clients []*redlatch.Client
			for _, off := range []time.Duration{time.Hour, 0, -3 * time.Hour} {
				clients = append(clients, m.client(t, off, false, redlatch.Options{AssumeFresh: true}))
			}
			began := time.Now()
			takeTurns(t, clients, 10)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("30 turns took %v", took)
			}
		})
	}
}
