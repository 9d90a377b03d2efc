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
)

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
		hosts[1].Links[2:].Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpRelease: 4 * time.Millisecond} })
		start := time.Now()
		go first.Release(context.Background())
		l := <-lease
		waited := time.Since(start)
		if want := 10*time.Second - 102*time.Millisecond - waited; waited != 4*time.Millisecond || l.Remaining() != want {
			t.Errorf("a lease that was gathered in %v has %v left, want %v", waited, l.Remaining(), want)
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
					links[0].Mend()
					after = append(after, req.Value)
				}
			}
		})
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		ctx := locktest.Within(t, 2*time.Second)
		c.Lock(ctx, "job", nil)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if yielded == "" || len(after) == 0 || slices.Contains(after, yielded) {
			t.Errorf("%q was yielded without an answer, and then %q asked for", yielded, after)
		}
	})
}
