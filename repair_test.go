package redlatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// TestRepairOfALockThatWasReleasedLeavesNothing has a node say that it lacks a
// lock when that has been released, and another has had it since: the fence is
// not at the token any more, by which a repair would find out.
func TestRepairOfALockThatWasReleasedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		c := newClient(t, nodes, redlatch.Options{})
		links[2].set(func(l *link) { l.refusing = errRefused })
		l := mustLock(t, c, "job", redlatch.LockOptions{})
		synctest.Wait()
		links[2].set(func(l *link) { l.refusing, l.back = nil, 100*time.Millisecond })
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		other := newClient(t, nodes, redlatch.Options{})
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := mustLock(t, other, "job", redlatch.LockOptions{}).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := links[2].count(node.OpRepair); n != 0 {
			t.Errorf("a lock that was released was sent %d repairs", n)
		}
		wantFree(t, links, "job")
	})
}

// TestRepairThatIsOvertakenByTheReleaseIsUndone has the repair of a node that
// lost the lock be on its way when that is released. A contender has left its
// fence there meanwhile.
func TestRepairThatIsOvertakenByTheReleaseIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		c := newClient(t, nodes, redlatch.Options{})
		l := mustLock(t, c, "job", redlatch.LockOptions{})
		synctest.Wait()
		release(t, links[2], "job")
		_, err := newClient(t, nodes, redlatch.Options{}).TryLock(t.Context(), "job", redlatch.LockOptions{})
		wantErr(t, err, redlatch.ErrHeld)
		synctest.Wait()
		links[2].set(func(l *link) {
			l.hook = func(req node.Request) {
				if req.Op == node.OpRepair {
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
		// An answer in the very moment in which the round is settled is left to
		// the next extension.
		for links[2].count(node.OpRepair) == 0 {
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantFree(t, links, "job")
	})
}
