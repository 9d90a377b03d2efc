package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// TestMinoritiesThatComeLateAreSettled has callers share the nodes of a healthy
// network. Each node is slow to answer the caller that it granted. Two callers
// wait for these answers, since the other nodes are no quorum. With three
// callers, a quorum refuses each of them first, and its grants arrive after its
// round is over.
func TestMinoritiesThatComeLateAreSettled(t *testing.T) {
	for _, test := range []struct{ callers, nodes int }{{2, 2}, {2, 4}, {3, 3}, {3, 6}} {
		t.Run(fmt.Sprintf("%d callers, %d nodes", test.callers, test.nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mems := memory.Nodes(test.nodes)
				var all sync.WaitGroup
				for me := range test.callers {
					var nodes []redlatch.Node
					for i, m := range mems {
						l := locktest.NewLink(t, m.(*memory.Node))
						if i%test.callers == me {
							l.Back = 5 * time.Millisecond
						} else {
							l.Out = time.Millisecond
						}
						nodes = append(nodes, l)
					}
					c := locktest.NewClient(t, nodes, redlatch.Options{})
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						l, err := c.Lock(ctx, "job", nil)
						if err != nil {
							t.Errorf("caller %d: %v", me, err)
							return
						}
						l.Release(t.Context())
					})
				}
				all.Wait()
			})
		})
	}
}

func TestNodeWithAWrongClockIsNotAskedWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		off := locktest.NewLink(t, memory.New(&memory.Options{Name: "off", Clock: func() time.Time { return time.Now().Add(-time.Hour) }}))
		links[2], nodes[2] = off, off
		h := locktest.NewClient(t, nodes, redlatch.Options{})
		w := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
		off.Set(func(l *locktest.Link) { l.Back = time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := links[0].Count(node.OpAcquire)
		w.Lock(ctx, "job", nil)
		if n := links[0].Count(node.OpAcquire) - before; n > 100 {
			t.Errorf("one waiter asked a node %d times in 10 s", n)
		}
		l.Release(t.Context())
	})
}

func TestMinorityBesideAHolderIsLeftToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		h := locktest.NewClient(t, nodes, redlatch.Options{})
		w := locktest.NewClient(t, nodes, redlatch.Options{})
		links[2].SetDown(errors.New("down"))
		l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
		synctest.Wait() // until the node that is down was asked
		links[2].SetDown(nil)
		time.Sleep(time.Millisecond) // so that the tokens differ
		links[2].Set(func(l *locktest.Link) { l.Back = time.Millisecond })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := links[0].Count(node.OpAcquire)
		w.Lock(ctx, "job", nil)
		if n := links[0].Count(node.OpAcquire) - before; n > 100 {
			t.Errorf("one waiter asked a node %d times in 10 s", n)
		}
		if n := links[2].Count(node.OpAcquire); n > 3 {
			t.Errorf("and the node that it was to leave alone %d times", n)
		}
		if at := links[2].Holder(t, "job"); at == "" || at != links[0].Holder(t, "job") {
			t.Errorf("the node that the holder lacked has %q, want it repaired", at)
		}
		l.Release(t.Context())
	})
}

func TestWakeIsNotLostWhileItsNodeIsBeingAsked(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, _ := locktest.NewLinks(t, n)
				var mem, wn []redlatch.Node
				var slow []*locktest.Link
				for _, l := range links {
					s := locktest.NewLink(t, l.Node)
					mem, wn, slow = append(mem, l.Node), append(wn, s), append(slow, s)
				}
				h := locktest.NewClient(t, mem, redlatch.Options{})
				// another came before w, and gets the lock that is kept for w.
				another := func(op node.Op) {
					for _, n := range mem {
						req := node.Request{Op: op, Name: "job", Value: "another", TTL: time.Minute, Wait: true, Ticket: 1}
						if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
							t.Fatal(op, r.Status, err)
						}
					}
				}
				w := locktest.NewClient(t, wn, redlatch.Options{})
				l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
				for _, s := range slow {
					// Notifications overtake answers.
					s.Set(func(l *locktest.Link) {
						l.Out, l.Back, l.WakeLag = 2*time.Millisecond, 10*time.Millisecond, -10*time.Millisecond
					})
				}
				var got time.Time
				var all sync.WaitGroup
				all.Go(func() {
					l := locktest.MustLock(t, w, "job", redlatch.LockOptions{})
					got = time.Now()
					l.Release(t.Context())
				})
				time.Sleep(1050 * time.Millisecond)
				l.Release(t.Context()) // notifies w, which asks
				time.Sleep(time.Millisecond)
				another(node.OpAcquire)
				time.Sleep(5 * time.Millisecond)
				another(node.OpRelease) // notifies w again, before its answer arrives
				start := time.Now()
				all.Wait()
				if took := got.Sub(start); took > 100*time.Millisecond {
					t.Errorf("%d nodes: free for %v until the only waiter had it", n, took)
				}
			})
		})
	}
}

func TestCancelledCallerDoesNotWaitForWhatItGivesUp(t *testing.T) {
	for what, holders := range map[string][]string{
		"yielded to who is before it": {"x", "y"},
		"left to the holder":          {"x", "x"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, 3)
				c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 10 * time.Second})
				for i, holder := range holders {
					links[i+1].Take(t, "job", holder, time.Minute)
					links[i+1].Set(func(l *locktest.Link) { l.Back = time.Millisecond })
				}
				var slow atomic.Int32
				links[0].Set(func(l *locktest.Link) {
					l.Hook = func(req node.Request) {
						if req.Op == node.OpYield || req.Op == node.OpRelease {
							slow.Add(1)
							time.Sleep(5 * time.Second)
						}
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				start := time.Now()
				_, err := c.Lock(ctx, "job", nil)
				if took := time.Since(start); took != 100*time.Millisecond || slow.Load() == 0 {
					t.Errorf("cancelled after 100ms, returned after %v, with %d slow requests: %v", took, slow.Load(), err)
				}
				time.Sleep(10 * time.Second)
			})
		})
	}
}

func TestDeadHeadIsDroppedThoughOthersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memory.New(nil)
		w := locktest.NewClient(t, []redlatch.Node{n}, redlatch.Options{})
		do := func(op node.Op, value string, ticket int64) node.Status {
			r, err := n.Do(context.Background(), node.Request{Op: op, Name: "job", Value: value, TTL: time.Minute, Wait: true, Ticket: ticket})
			must(t, err)
			return r.Status
		}
		do(node.OpAcquire, "early", 0)
		do(node.OpAcquire, "dead", 1) // queued, and never heard of again
		done := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { // comes every 200 ms and stays for 1 ms
			for i := 0; ; i++ {
				time.Sleep(time.Millisecond)
				do(node.OpRelease, "early", 0)
				time.Sleep(200 * time.Millisecond)
				select {
				case <-done:
					return
				default:
				}
				do(node.OpAcquire, "early", 0)
			}
		})
		start := time.Now()
		l, err := w.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: time.Minute})
		if took := time.Since(start); err != nil || took > 3*time.Second {
			t.Errorf("free for 99.5%% of the time, and had after %v: %v", took, err)
		}
		if l != nil {
			l.Release(t.Context())
		}
		close(done)
		all.Wait()
	})
}

func TestRequestThatComesLateLeavesNoPlaceInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		h := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, h, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		var own []redlatch.Node
		for _, x := range links {
			own = append(own, lateNode{x.Node})
		}
		w := locktest.NewClient(t, own, redlatch.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := w.Lock(ctx, "job", nil)
		locktest.WantErr(t, err, context.DeadlineExceeded)
		cancel()
		time.Sleep(500 * time.Millisecond)
		l.Release(t.Context())
		start := time.Now()
		l2, err := h.Lock(t.Context(), "job", nil)
		if took := time.Since(start); err != nil || took > 50*time.Millisecond {
			t.Errorf("nobody waits, and the lock took %v, %v", took, err)
		}
		if l2 != nil {
			l2.Release(t.Context())
		}
	})
}

func TestGrantThatComesLateIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		h := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
		slow := &slowFirst{Node: links[2].Node}
		w := locktest.NewClient(t, []redlatch.Node{links[0].Node, links[1].Node, slow}, redlatch.Options{NodeTimeout: 2 * time.Second})
		time.AfterFunc(500*time.Millisecond, func() { l.Release(context.Background()) })
		lw := locktest.MustLock(t, w, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		time.Sleep(100 * time.Millisecond)
		must(t, lw.Release(t.Context()))
		time.Sleep(5 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

func TestWaitIsHeededInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		h := locktest.NewClient(t, nodes, redlatch.Options{})
		w := locktest.NewClient(t, nodes, redlatch.Options{RetryDelay: 10 * time.Second})
		l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
		time.AfterFunc(100*time.Millisecond, func() {
			for _, l := range links {
				l.SetDown(errors.New("down"))
			}
		})
		start := time.Now()
		w.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 500 * time.Millisecond})
		if took := time.Since(start); took > time.Second {
			t.Errorf("Wait of 500ms took %v", took)
		}
		for _, l := range links {
			l.SetDown(nil)
		}
		l.Release(t.Context())
	})
}

func TestTicketsAreTakenByTheNodesClocks(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, nodes := locktest.NewLinks(t, 3)
				h := locktest.NewClient(t, nodes, redlatch.Options{})
				l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
				right := locktest.NewClient(t, nodes, redlatch.Options{})
				wrong := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, offClock{time.Now(), by}))
				first, second := wrong, right
				if by < 0 {
					first, second = right, wrong
				}
				var order []string
				var mu sync.Mutex
				var all sync.WaitGroup
				lock := func(c *redlatch.Client, name string) {
					all.Go(func() {
						l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
						mu.Lock()
						order = append(order, name)
						mu.Unlock()
						l.Release(t.Context())
					})
				}
				lock(first, "first")
				time.Sleep(3 * time.Second)
				lock(second, "second")
				time.Sleep(3 * time.Second)
				l.Release(t.Context())
				all.Wait()
				if order[0] != "first" {
					t.Errorf("clock off by %v: %v", by, order)
				}
			})
		})
	}
}

func TestNewcomerHasItsOwnPatienceWithAnOutageThatOthersWaitOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		h := locktest.NewClient(t, nodes, redlatch.Options{})
		w := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { w.Lock(ctx, "job", &redlatch.LockOptions{Wait: time.Minute}) })
		time.Sleep(time.Second)
		for _, l := range links {
			l.SetDown(errors.New("down"))
		}
		time.Sleep(time.Second) // the one that asks notices
		start := time.Now()
		_, err := w.Lock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if took := time.Since(start); took != redlatch.OutagePatience {
			t.Errorf("the outage was reported after %v: %v", took, err)
		}
		cancel()
		all.Wait()
		for _, l := range links {
			l.SetDown(nil)
		}
		l.Release(t.Context())
	})
}

// lateNode executes acquires 400 ms late and loses their replies.
type lateNode struct{ *memory.Node }

func (n lateNode) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Op != node.OpAcquire {
		return n.Node.Do(context.Background(), req)
	}
	time.AfterFunc(400*time.Millisecond, func() { n.Node.Do(context.Background(), req) })
	<-ctx.Done()
	return node.Reply{}, ctx.Err()
}

// slowFirst executes the first acquire long after it was sent.
type slowFirst struct {
	*memory.Node
	mu   sync.Mutex
	seen int
}

func (n *slowFirst) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Op == node.OpAcquire {
		n.mu.Lock()
		n.seen++
		first := n.seen == 1
		n.mu.Unlock()
		if first { // is in a buffer longer than the whole lease; its answer arrives
			time.Sleep(900 * time.Millisecond)
		}
	}
	return n.Node.Do(context.Background(), req)
}
