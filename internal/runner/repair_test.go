package runner_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

var must = check.Must

// TestRepairOfALockThatWasReleasedLeavesNothing has a node report that it lacks
// a lock after the lock was released and another client has held it. The client
// must not send a repair: a node refuses one only while its fence equals the
// token, and the fence is higher by then.
func TestRepairOfALockThatWasReleasedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[2].Set(func(l *locktest.Link) { l.Refuse = errRefused })
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		synctest.Wait()
		links[2].Set(func(l *locktest.Link) { l.Refuse, l.Back = nil, 100*time.Millisecond })
		must(t, l.Extend(t.Context()))
		other := locktest.NewClient(t, nodes, redlatch.Options{})
		must(t, l.Release(t.Context()))
		must(t, locktest.MustLock(t, other, "job", redlatch.LockOptions{}).Release(t.Context()))
		time.Sleep(time.Second)
		if n := links[2].Count(node.OpRepair); n != 0 {
			t.Errorf("a lock that was released was sent %d repairs", n)
		}
		locktest.WantFree(t, links, "job")
	})
}

// TestRepairThatMeetsARivalIsTriedAgainSoon has a node lose a lock, and a rival be granted
// it there for a moment, before each of the first extensions or between an extension and
// its repair. A rolling restart waits until every lock is back, so that must not take until
// the next extension, each time.
func TestRepairThatMeetsARivalIsTriedAgainSoon(t *testing.T) {
	const rival = "0123456789abcdef0123456789abcdef:rival"
	for _, before := range []node.Op{node.OpExtend, node.OpRepair} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
			synctest.Wait()
			locktest.Release(t, links[2], "job")
			met := 0
			links[2].Set(func(l *locktest.Link) {
				l.Hook = func(req node.Request) {
					if req.Op == before && met < 3 {
						met++
						l.Take(t, "job", rival, 100*time.Millisecond)
					}
				}
			})
			for links[2].Count(node.OpExtend) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(4 * time.Second)
			if links[2].Holder(t, "job") != links[0].Holder(t, "job") {
				t.Errorf("a rival came before %d requests to %s: 4 s after the first extension the node has the lock for %q", met, before, links[2].Holder(t, "job"))
			}
			must(t, l.Release(t.Context()))
		})
	}
}
