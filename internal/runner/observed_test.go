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
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/casnode"
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
	for i := range m.shelves {
		nodes = append(nodes, m.node(i, off))
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

// node returns a server without a clock, as a machine sees it whose wall clock is off.
func (m *mixed) node(i int, off time.Duration) redlatch.Node {
	start, asked := time.Now(), false
	return casnode.New(store.Timed{Store: m.shelves[i].Open()}, &casnode.Options{Uptime: func() time.Duration {
		if !asked { // it compares this with the wall clock, which is off
			asked = true
			return time.Since(start) - off
		}
		return time.Since(start)
	}})
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
					exclusion.Never(t, "%+v: token %d after %d", c, l.Token(), last)
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

// fencesAhead has a client with a fast clock leave a fence on each node, by another
// amount ahead of the time.
func (m *mixed) fencesAhead(t *testing.T) {
	for i := range m.shelves {
		one := &mixed{shelves: m.shelves[i : i+1]}
		fast := one.client(t, time.Duration(i+6)*time.Minute, false, redlatch.Options{Guard: redlatch.GuardOff})
		must(t, locktest.MustLock(t, fast, "job", redlatch.LockOptions{}).Release(t.Context()))
	}
}

func TestFencesFarAheadOfEachOtherLockNobodyOut(t *testing.T) {
	for _, nodes := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			m := newMixed(nodes, nodes)
			m.fencesAhead(t)
			var clients []*redlatch.Client
			for _, off := range []time.Duration{0, 3 * time.Minute, -3 * time.Minute} {
				clients = append(clients, m.client(t, off, false, redlatch.Options{Guard: redlatch.GuardOff}))
			}
			began := time.Now()
			takeTurns(t, clients, 10)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("%d nodes: 30 turns took %v", nodes, took)
			}
		})
	}
}

// TestFastClientWithoutClocksGoesBeforeTheOthers shows what an assumption is needed for:
// a client with a fast clock locks a name on nodes without a clock, while the node that
// has one is away.
func TestFastClientWithoutClocksGoesBeforeTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, others := newMixed(2, 2), memory.Nodes(2)
		link := locktest.NewLink(t, others[0].(*memory.Node))
		client := func(off time.Duration, nodes ...redlatch.Node) *redlatch.Client {
			return locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{Guard: redlatch.GuardOff}, offClock{time.Now(), off}))
		}
		link.Cut()
		fast := locktest.MustLock(t, client(time.Hour, m.node(0, time.Hour), m.node(1, time.Hour), clockless{link}), "job", redlatch.LockOptions{})
		must(t, fast.Release(t.Context()))
		link.Mend()
		l := locktest.MustLock(t, client(0, others[1]), "job", redlatch.LockOptions{})
		if back := time.Duration(fast.Token()-l.Token()) * time.Microsecond; back.Round(time.Hour) != time.Hour {
			t.Errorf("on a node with a clock, which has replaced the others, the token is %v lower", back)
		}
		right := client(0, m.node(0, 0), clockless{link}) // the other one without a clock is away
		for range 50 {
			if _, err := right.TryLock(t.Context(), "job", nil); err == nil {
				t.Fatal("a token above the fence of one node is not ahead of the clock of the other")
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(11 * time.Minute)
		locktest.MustLock(t, right, "job", redlatch.LockOptions{})
	})
}

// TestWaiterGoesAboveEveryFenceWithoutClocks: a node says only to the first in its
// queue that a token is too low, and without clocks that may be another one on each
// node. So a waiter does not wait until it is told so.
func TestWaiterGoesAboveEveryFenceWithoutClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMixed(2, 2)
		m.fencesAhead(t)
		l := locktest.MustLock(t, m.client(t, 0, false, redlatch.Options{Guard: redlatch.GuardOff}), "job", redlatch.LockOptions{})
		low, high := &tokens{Node: m.node(0, 0), fence: l.Token()}, &tokens{Node: m.node(1, 0), fence: l.Token()}
		c := locktest.NewClient(t, []redlatch.Node{low, high}, redlatch.Options{Guard: redlatch.GuardOff})
		time.AfterFunc(time.Second, func() { must(t, l.Release(t.Context())) })
		must(t, locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context()))
		if low.above == 0 || high.above == 0 || low.below+high.below > 2 { // the first request knows no fence
			t.Errorf("%d and %d requests are above the fence, %d and %d are not", low.above, high.above, low.below, high.below)
		}
	})
}

// tokens is a node that does not notify, and counts the requests for a lock by whether
// their token is above a fence.
type tokens struct {
	redlatch.Node
	fence        node.Token
	above, below int
}

func (n *tokens) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	switch {
	case req.Op != node.OpAcquire:
	case req.Token > n.fence:
		n.above++
	default:
		n.below++
	}
	return n.Node.Do(ctx, req)
}

// unnamed is a node whose first answer comes too late for the client to wait for it.
type unnamed struct{ *casnode.Node }

func (n unnamed) Identity(ctx context.Context) (string, time.Time, error) {
	time.Sleep(300 * time.Millisecond)
	return n.Node.Identity(ctx)
}

// TestNewWaiterLeavesNoTimer has the first request of a client come before it knows the
// node. It waits, so it puts a place.
func TestNewWaiterLeavesNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := store.New(nil)
		open := func() *casnode.Node { return casnode.New(store.Placed{Timed: store.Timed{Store: shelf.Open()}}, nil) }
		locktest.MustLock(t, locktest.NewClient(t, []redlatch.Node{open()}, redlatch.Options{Guard: redlatch.GuardOff}), "job", redlatch.LockOptions{})
		n := open()
		time.AfterFunc(900*time.Millisecond, func() { // who leaves may leave one
			if n.Timers() > 0 {
				t.Errorf("%d timers", n.Timers())
			}
		})
		leaveAfter(t, locktest.NewClient(t, []redlatch.Node{unnamed{n}}, redlatch.Options{Guard: redlatch.GuardOff}), time.Second)
	})
}
