package redlatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// TestRepairOfALockThatWasReleasedLeavesNothing has a node report that it lacks
// a lock after the lock was released and another client has held it. The client
// must not send a repair: a node refuses one only while its fence equals the
// token, and the fence is higher by then.
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

// TestRepairThatIsOvertakenByTheReleaseIsUndone releases a lock while the
// repair of a node that lost it is in flight. Meanwhile a contender has raised
// the fence there.
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
		// An answer in the very moment in which the round is decided is used by
		// the next extension only.
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
