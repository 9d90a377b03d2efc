package runner_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

// TestReleaseIsDoneWhereANodeNeverHadTheLock releases a lock that one node
// frees, one node does not have, and one node does not answer for. The name is
// free on a quorum of nodes, and the next caller gets it.
func TestReleaseIsDoneWhereANodeNeverHadTheLock(t *testing.T) {
	for what, third := range map[string]func(l *locktest.Link){
		"frozen":      func(l *locktest.Link) { l.Frozen = make(chan struct{}) },
		"unreachable": func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, 3)
				c := locktest.NewClient(t, nodes, redlatch.Options{})
				other := locktest.NewClient(t, []redlatch.Node{links[0].Node, links[1].Node, links[2].Node}, redlatch.Options{})
				l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
				synctest.Wait()
				links[1].Drop("job")
				links[2].Set(third)
				// The node that has the key answers last.
				links[0].Set(func(l *locktest.Link) { l.Out = 50 * time.Millisecond })
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("the lock is free on two of three nodes, and Release says: %v", err)
				}
				if v := links[0].Holder(t, "job"); v != "" {
					t.Errorf("Release returned before the node that had the key had freed it")
				}
				if _, err := other.TryLock(t.Context(), "job", nil); err != nil {
					t.Errorf("the next caller: %v", err)
				}
			})
		})
	}
}

// TestReleaseDoesNotWaitForANodeThatIsKnownToBeSilent has a suspect node that
// does not answer: the answers of the others are enough.
func TestReleaseDoesNotWaitForANodeThatIsKnownToBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[2].Freeze()
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		time.Sleep(time.Second) // node 3 is known to be silent
		links[1].Drop("job")
		start := time.Now()
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the release took %v", took)
		}
	})
}

// TestReleaseSaysLostThoughNodesAreDown has so many nodes report that the lock
// is not ours that no quorum can have held it at the end, whatever the other
// nodes hold.
func TestReleaseSaysLostThoughNodesAreDown(t *testing.T) {
	for n, without := range map[int]int{3: 2, 4: 2, 5: 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
			synctest.Wait()
			for i, lk := range links {
				if i < without {
					lk.Drop("job")
					lk.Set(func(l *locktest.Link) { l.Out = 50 * time.Millisecond })
				} else {
					lk.Set(func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable })
				}
			}
			locktest.WantErr(t, l.Release(t.Context()), redlatch.ErrLost)
		})
	}
}
