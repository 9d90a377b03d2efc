package casnode_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// bench has nodes of a shelf with places, each of which is a process.
type bench struct {
	t     *testing.T
	shelf *clockless.Shelf
	token node.Token
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, shelf: clockless.New(nil), token: node.Token(time.Now().UnixMicro())}
}

func (b *bench) open() *casnode.Node {
	n := casnode.New(clockless.Placed{Timed: clockless.Timed{Store: b.shelf.Open()}}, nil)
	b.t.Cleanup(func() { n.Close() })
	return n
}

// asks has a waiter ask, with a ticket of its own number, and returns the reply.
func (b *bench) asks(n *casnode.Node, op node.Op, waiter int, change func(*node.Request)) node.Reply {
	b.t.Helper()
	b.token++
	req := node.Request{Op: op, Name: "job", Value: fmt.Sprint(waiter), TTL: time.Minute, Fencing: node.Fencing{Token: b.token, Window: window, Retention: time.Minute}}
	if op == node.OpAcquire {
		req.Ticket, req.Wait = int64(waiter)+1, true
	}
	if change != nil {
		change(&req)
	}
	r, err := n.Do(context.Background(), req)
	check.Must(b.t, err)
	return r
}

// places returns how many places there are of processes that live.
func (b *bench) places() int {
	all, err := clockless.Placed{Timed: clockless.Timed{Store: b.shelf.Open()}}.Places(b.t.Context(), "job")
	check.Must(b.t, err)
	return len(all)
}

// TestDeadProcessDelaysOthersByOneTurn has a process die with two places in front. A
// release after that is delayed for as long as nobody takes its turn, and the next
// one is not. After the lease of places is over the dead delay nobody.
func TestDeadProcessDelaysOthersByOneTurn(t *testing.T) {
	for _, c := range []struct {
		dead, each int // processes, and their waiters
		after      time.Duration
		turns      int
	}{{1, 2, 0, 1}, {5, 1, 0, 5}, {5, 1, casnode.PlaceLease, 0}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			living := b.open()
			b.asks(living, node.OpAcquire, 0, nil)
			for i := range c.dead {
				n := b.open()
				for j := range c.each {
					b.asks(n, node.OpAcquire, 1+i*c.each+j, nil)
				}
			}
			const one, two = 20, 21
			for end := time.Now().Add(c.after); ; time.Sleep(node.WaiterLease) {
				b.asks(living, node.OpAcquire, one, nil)
				b.asks(living, node.OpAcquire, two, nil)
				if !time.Now().Before(end) {
					break
				}
			}
			for _, w := range []struct{ holder, next, turns int }{{0, one, c.turns}, {one, two, 0}} {
				began := time.Now()
				b.asks(living, node.OpRelease, w.holder, nil)
				for r := b.asks(living, node.OpAcquire, w.next, nil); r.Status != node.Granted; r = b.asks(living, node.OpAcquire, w.next, nil) {
					if c.dead == 1 && r.Left == 0 {
						t.Fatalf("%+v: waiter %d is %v, and is not told when to look", c, w.next, r.Status)
					}
					time.Sleep(10 * time.Millisecond)
				}
				most := time.Duration(w.turns) * (node.WaiterLease + 60*time.Millisecond)
				if took := time.Since(began); took > most {
					t.Errorf("%+v: waiter %d waits for %v, want %v or less", c, w.next, took, most)
				}
			}
		})
	}
}

// TestWhoPutsAPlaceWithoutSeeingTimersEndsNone leaves a timer before others come. What a
// place that is put returns has neither places nor timers.
func TestWhoPutsAPlaceWithoutSeeingTimersEndsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.asks(b.open(), node.OpAcquire, 0, nil)
		b.asks(b.open(), node.OpAcquire, 9, func(r *node.Request) { r.Wait = false })
		for i := 1; i <= 5; i++ {
			if r := b.asks(b.open(), node.OpAcquire, i, nil); r.Status != node.Held || r.Rank != i {
				t.Errorf("waiter %d: %v, rank %d", i, r.Status, r.Rank)
			}
		}
	})
}

// TestProcessKeepsThePlacesOfOthersThatMissNoTurn has a waiter miss its turn. The other
// one of its process keeps its place.
func TestProcessKeepsThePlacesOfOthersThatMissNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		n := b.open()
		for i := range 4 {
			b.asks(n, node.OpAcquire, i, nil)
		}
		b.asks(n, node.OpRelease, 0, nil)
		time.Sleep(node.WaiterLease + time.Millisecond)
		b.asks(n, node.OpAcquire, 2, nil)
		if got := b.places(); got != 1 && got != 2 {
			t.Errorf("there are %d places, want that of the last one, and perhaps of the one that asked", got)
		}
	})
}

// putting notes whether places were stored before.
type putting struct {
	clockless.Placed
	again []bool
}

func (p *putting) Put(ctx context.Context, place casnode.Place, again bool) (casnode.Snapshot, error) {
	p.again = append(p.again, again)
	return p.Placed.Put(ctx, place, again)
}

// TestProcessThatWasTakenForDeadPutsItsPlacesAnew has a process show no life for too long.
func TestProcessThatWasTakenForDeadPutsItsPlacesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		store := &putting{Placed: clockless.Placed{Timed: clockless.Timed{Store: b.shelf.Open()}}}
		n := casnode.New(store, nil)
		defer n.Close()
		b.asks(b.open(), node.OpAcquire, 0, nil)
		for _, after := range []time.Duration{0, time.Second, casnode.PlaceLease} {
			time.Sleep(after)
			b.asks(n, node.OpAcquire, 1, nil)
		}
		if got := fmt.Sprint(store.again); got != "[false true false]" {
			t.Errorf("the place was stored before: %s; want [false true false]", got)
		}
	})
}

// TestReleaseFromMemoryLeavesNoPlace has a waiter leave when its process has just written
// the row.
func TestReleaseFromMemoryLeavesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		n := b.open()
		b.asks(n, node.OpAcquire, 0, nil)
		b.asks(n, node.OpAcquire, 1, nil)
		b.asks(b.open(), node.OpAcquire, 2, nil)
		b.asks(n, node.OpRelease, 0, nil)
		b.asks(n, node.OpRelease, 1, nil)
		if got := b.places(); got != 1 {
			t.Errorf("there are %d places, want that of the last one", got)
		}
	})
}

// TestWakeForOneThatLeavesIsPassedOn has a place be put late, when its waiter leaves, and
// a release keep the name for it before it has left.
func TestWakeForOneThatLeavesIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		holder, near := b.open(), b.shelf.Open()
		store := clockless.Placed{Timed: clockless.Timed{Store: near}}
		n := casnode.New(store, nil)
		defer n.Close()
		n.Listen(func(node.Wake) {})
		b.asks(holder, node.OpAcquire, 0, nil)
		for range 2 { // the first time, it begins to hear
			b.asks(n, node.OpAcquire, 1, nil)
			synctest.Wait()
		}
		all, err := store.Places(t.Context(), "job")
		check.Must(t, err)
		steps := 0
		near.Between = func() {
			if steps++; steps == 3 { // its place is removed, and that is not answered yet
				far := clockless.Placed{Timed: clockless.Timed{Store: b.shelf.Open()}}
				_, err := far.Put(t.Context(), all[0], true)
				check.Must(t, err)
				b.asks(holder, node.OpRelease, 0, nil)
			}
		}
		b.asks(n, node.OpRelease, 1, nil)
		synctest.Wait()
		if got := b.places(); got != 0 {
			t.Errorf("there are %d places, want none", got)
		}
	})
}

// TestPlaceThatComesAfterItsWaiterHasLeftIsRemoved has a release overtake the place of its
// waiter, where nobody is notified.
func TestPlaceThatComesAfterItsWaiterHasLeftIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		near := b.shelf.Open()
		store := &putting{Placed: clockless.Placed{Timed: clockless.Timed{Store: near}}}
		n := casnode.New(store, nil)
		defer n.Close()
		b.asks(b.open(), node.OpAcquire, 0, nil)
		b.asks(n, node.OpAcquire, 1, nil)
		near.Between = func() { near.Between = nil; b.asks(n, node.OpRelease, 1, nil) }
		b.asks(n, node.OpAcquire, 1, nil)
		if synctest.Wait(); b.places() != 0 || len(store.again) != 2 {
			t.Errorf("it was put %d times, and there are %d places; want none after the second time", len(store.again), b.places())
		}
	})
}

// leaving has a waiter leave before each of its writes.
type leaving struct {
	clockless.Placed
	leaves func()
}

func (l *leaving) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (bool, casnode.Snapshot, error) {
	l.leaves()
	return l.Placed.Swap(ctx, seen, w)
}

// TestNameIsPassedOnUntilSomebodyIsThere has the first waiter leave while the name is
// kept for it, and the second while it is passed on.
func TestNameIsPassedOnUntilSomebodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		store := &leaving{clockless.Placed{Timed: clockless.Timed{Store: b.shelf.Open()}}, func() {}}
		waiters := []*casnode.Node{casnode.New(store, nil), b.open(), b.open(), b.open()}
		defer waiters[0].Close()
		turn := false
		waiters[3].Listen(func(w node.Wake) { turn = turn || w.Kind == node.WakeTurn })
		for i, n := range append(waiters, waiters[3]) {
			b.asks(n, node.OpAcquire, min(i, 3), nil)
			synctest.Wait() // the last one begins to hear
		}
		left := 0
		store.leaves = func() {
			if left < 2 {
				left++
				b.asks(waiters[left], node.OpRelease, left, nil)
			}
		}
		b.asks(waiters[0], node.OpRelease, 0, nil)
		if synctest.Wait(); !turn {
			t.Error("the third one does not hear that it is its turn")
		}
	})
}

// TestNameThatCameFreeIsLeftToTheFirstForAMoment has a lease end by itself.
func TestNameThatCameFreeIsLeftToTheFirstForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.asks(b.open(), node.OpAcquire, 0, func(req *node.Request) { req.TTL = time.Second })
		b.asks(b.open(), node.OpAcquire, 1, nil)
		second, writes := b.open(), []bool{}
		for _, after := range []time.Duration{0, time.Second, nodestate.FreshFor} {
			time.Sleep(after)
			before := b.shelf.Row("job").Version
			b.asks(second, node.OpAcquire, 2, nil)
			writes = append(writes, before != b.shelf.Row("job").Version)
		}
		if !slices.Equal(writes, []bool{false, false, true}) {
			t.Errorf("the second one writes: %v; want it to do so at last", writes)
		}
	})
}

// TestTakeLooksForThoseBeforeIt has a process that has just written the row ask again.
func TestTakeLooksForThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		n := b.open()
		b.asks(n, node.OpAcquire, 0, nil)
		b.asks(b.open(), node.OpAcquire, 1, nil)
		b.asks(n, node.OpRelease, 0, nil)
		for _, waits := range []bool{true, false} {
			if r := b.asks(n, node.OpAcquire, 2, func(req *node.Request) { req.Wait = waits }); r.Status != node.Reserved {
				t.Errorf("who comes later is %v, if it waits: %v", r.Status, waits)
			}
		}
	})
}
