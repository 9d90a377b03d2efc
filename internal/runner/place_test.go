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

		give := func(after time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			if _, err := c.Lock(ctx, "job", nil); err == nil {
				t.Fatal("the lock was acquired")
			}
		}
		give(10 * time.Millisecond) // the node grants, and nobody waits for its answer
		links[0].Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				if req.Op == node.OpRelease {
					l.Cut()
				}
			}
		})
		give(150 * time.Millisecond)
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
