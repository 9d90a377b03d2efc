package runner_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// tardy is a node whose first grant is answered after its round is over. Before
// that its earlier notification arrives and offers the lock once more.
// Meanwhile a waiter with a lower ticket queues.
type tardy struct {
	*memory.Node
	mu     sync.Mutex
	asked  int
	listen func(node.Wake)
}

func (n *tardy) Listen(f func(node.Wake)) (stop func()) {
	n.listen = f
	return n.Node.Listen(f)
}

func (n *tardy) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	reply, err := n.Node.Do(context.Background(), req)
	if req.Op != node.OpAcquire {
		return reply, err
	}
	n.mu.Lock()
	n.asked++
	asked := n.asked
	n.mu.Unlock()
	switch asked {
	case 1:
		earlier := req
		earlier.Value, earlier.Ticket = "0", 1
		time.AfterFunc(10*time.Millisecond, func() { n.Node.Do(context.Background(), earlier) })
		time.AfterFunc(33*time.Millisecond, func() { n.listen(node.Wake{Kind: node.WakeTurn, Value: req.Value}) })
		time.Sleep(36 * time.Millisecond)
	case 2:
		time.Sleep(10 * time.Millisecond)
	}
	return reply, err
}

func TestGrantIsNotCountedWhereTheLockWasLeftToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		nodes[0] = &tardy{Node: links[0].Node}
		links[1].Take(t, "job", "x", time.Minute)
		links[2].Take(t, "job", "y", time.Minute)
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 30 * time.Millisecond})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		ours := 0
		for _, link := range links {
			if link.Holder(t, "job") == links[4].Holder(t, "job") {
				ours++
			}
		}
		if ours < 3 || l.Err() != nil {
			t.Errorf("a lease stands on %d of 5 nodes", ours)
		}
	})
}

func TestValidityIsCountedFromTheFirstRequestOfAGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 5, redlatch.Options{})
		first := locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
		synctest.Wait()
		lease := make(chan *redlatch.Lease)
		go func() {
			lease <- locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{TTL: 10 * time.Second})
		}()
		time.Sleep(time.Millisecond)
		// Two nodes notify the waiter at once, the third 4 ms later.
		for _, l := range hosts[1].Links[2:] {
			l.Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpRelease: 4 * time.Millisecond} })
		}
		start := time.Now()
		go first.Release(context.Background())
		l := <-lease
		waited := time.Since(start)
		if want := 10*time.Second - 102*time.Millisecond - waited; waited != 4*time.Millisecond || l.Remaining() != want {
			t.Errorf("a lease that was gathered in %v has %v left, want %v", waited, l.Remaining(), want)
		}
	})
}

func TestWakeThatComesLateDoesNotReleaseForTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 1, redlatch.Options{})
		first := locktest.MustLock(t, hosts[1].Client, "job", redlatch.LockOptions{})
		lease := make(chan *redlatch.Lease)
		go func() { lease <- locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{}) }()
		time.Sleep(time.Millisecond)
		first.Release(t.Context())
		l := <-lease
		road := hosts[0].Links[0]
		var once sync.Once
		road.Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				if req.Op == node.OpRelease {
					once.Do(func() {
						road.Listener(node.Wake{Kind: node.WakeTurn, Value: req.Value})
						time.Sleep(5 * time.Millisecond)
					})
				}
			}
		})
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("the lock was released by others than its holder: %v", err)
		}
	})
}

func TestOfferWithoutAnAnswerEndsItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		links[1].Take(t, "job", "x", time.Minute)
		links[2].Take(t, "job", "y", time.Minute)
		var mu sync.Mutex
		var yielded string
		var after []string
		links[0].Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case req.Op == node.OpYield && yielded == "":
					yielded = req.Value
					// The node may execute it at any later time.
					links[0].Set(func(l *locktest.Link) { l.Refuse = locktest.ErrLostReply })
				case req.Op == node.OpAcquire && yielded != "":
					links[0].Set(func(l *locktest.Link) { l.Refuse = nil })
					after = append(after, req.Value)
				}
			}
		})
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		c.Lock(ctx, "job", nil)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if yielded == "" || len(after) == 0 || slices.Contains(after, yielded) {
			t.Errorf("%q was yielded without an answer, and then %q asked for", yielded, after)
		}
	})
}
