package casnode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestHolderIsBackBeforeACrowdOfWaiters has requests be refused again and again: a
// holder's come sooner, since all others wait for it.
func TestHolderIsBackBeforeACrowdOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tries = 100
		waits := func(req node.Request) time.Duration {
			begin := time.Now()
			for range tries {
				must(t, pause(t.Context(), req, tries))
			}
			return time.Since(begin) / tries
		}
		waiters := waits(node.Request{Op: node.OpAcquire, Waiting: node.Waiting{Wait: true}})
		for _, op := range []node.Op{node.OpRelease, node.OpExtend, node.OpRepair} {
			if holder := waits(node.Request{Op: op}); holder > waiters/10 {
				t.Errorf("%v waits for %v, and waiters for %v", op, holder, waiters)
			}
		}
	})
}
