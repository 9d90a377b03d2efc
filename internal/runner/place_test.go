package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// leaveAfter asks for "job", and leaves before it has it.
func leaveAfter(t *testing.T, c *redlatch.Client, d time.Duration) {
	t.Helper()
	ctx := locktest.Within(t, d)
	if _, err := c.Lock(ctx, "job", nil); err == nil {
		t.Fatal("the lock was acquired")
	}
}

// TestPlaceOfAnAttemptThatWasRepeatedIsUndone has an attempt find the key of
// the client's last one, which is not undone yet. The node queues it, and the
// release that has to come first is not sent. The node has the place all the
// same, and the attempt gives up.
func TestPlaceOfAnAttemptThatWasRepeatedIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 1)
		links[0].Set(func(l *locktest.Link) { l.Back = 100 * time.Millisecond })
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.MustLock(t, c, "another", redlatch.LockOptions{}) // shows the node's clock

		leaveAfter(t, c, 10*time.Millisecond) // the node grants, and nobody waits for its answer
		links[0].Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				if req.Op == node.OpRelease {
					l.Cut()
				}
			}
		})
		leaveAfter(t, c, 150*time.Millisecond)
		if n := links[0].Waiters(t, "job"); n != 1 {
			t.Fatalf("%d wait, want 1: this test shows less than it should", n)
		}
		links[0].Set(func(l *locktest.Link) { l.Hook, l.Refuse = nil, nil })
		time.Sleep(5 * time.Second)
		if n := links[0].Waiters(t, "job"); n != 0 {
			t.Errorf("%d wait after the attempt was given up", n)
		}
		locktest.WantFree(t, links, "job")
	})
}

// TestPlaceBeforeARefusalAsStaleIsUndone has an attempt find the key of the
// client's last one. The node queues it. The client releases that key and asks
// again; by then another claim has raised the fence, and the node refuses without a
// word of the place. The caller leaves before that answer.
func TestPlaceBeforeARefusalAsStaleIsUndone(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 1)
			link := links[0]
			if ordered {
				nodes[0] = &locktest.Ordered{Link: link}
			}
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			locktest.MustLock(t, c, "another", redlatch.LockOptions{}) // shows the node's clock
			link.Set(func(l *locktest.Link) { l.Back = 100 * time.Millisecond })

			leaveAfter(t, c, 10*time.Millisecond) // the node grants, and nobody waits for its answer
			asks := 0
			link.Set(func(l *locktest.Link) {
				l.Hook = func(req node.Request) {
					if req.Op != node.OpAcquire {
						return
					}
					if asks++; asks == 2 {
						raise := node.Request{Op: node.OpRelease, Name: "job", Value: "x", Fencing: node.Fencing{Token: req.Token + 1, Window: time.Minute, Retention: time.Hour}}
						if _, err := l.Node.Do(context.Background(), raise); err != nil {
							t.Error(err)
						}
					}
				}
			})
			leaveAfter(t, c, 250*time.Millisecond) // it was notified, and asks
			if n := link.Waiters(t, "job"); n != 1 {
				t.Fatalf("ordered %v: %d wait, want 1: this test shows less than it should", ordered, n)
			}
			time.Sleep(5 * time.Second)
			if asks != 2 {
				t.Errorf("ordered %v: the node was asked %d times, want 2: this test shows less than it should", ordered, asks)
			}
			if n := link.Waiters(t, "job"); n != 0 {
				t.Errorf("ordered %v: %d wait after the attempt was given up", ordered, n)
			}
			locktest.WantFree(t, links, "job")
		})
	}
}
