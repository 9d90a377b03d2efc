package runner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestExtendAtTheEndOfTheHoldSaysSoAndChangesNothing extends a lease whose
// deadline has reached its MaxHold. The lease is valid until then, and no node
// keeps the key longer.
func TestExtendAtTheEndOfTheHoldSaysSoAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		start := time.Now()
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 10 * time.Second, MaxHold: 12 * time.Second, NoKeepAlive: true})
		time.Sleep(5 * time.Second)
		must(t, l.Extend(t.Context()))
		deadline := l.Deadline()
		if d := deadline.Sub(start); d != 12*time.Second {
			t.Errorf("the deadline is %v after the acquisition, want MaxHold", d)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := links[0].Count(node.OpExtend)
		err := l.Extend(t.Context())
		locktest.WantErr(t, err, redlatch.ErrMaxHold)
		if errors.Is(err, redlatch.ErrLost) || l.Err() != nil || !l.Deadline().Equal(deadline) {
			t.Errorf("Extend said %v, and the lease is %v until %v, want it as it was", err, l.Err(), l.Deadline().Sub(start))
		}
		synctest.Wait()
		if n := links[0].Count(node.OpExtend) - before; n > 0 {
			t.Error("a node was asked to keep the key for longer than the lease can last")
		}
		<-l.Context().Done()
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost, redlatch.ErrMaxHold)
		locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
	})
}
