package runner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

// newMarked returns n nodes that are marked for locks of up to 5 min.
func newMarked(t *testing.T, n int) ([]*locktest.Guarded, []redlatch.Node) {
	all, nodes := locktest.NewGuarded(n)
	c := locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true, Cluster: redlatch.Cluster{MaxTTL: 5 * time.Minute}})
	locktest.MustLock(t, c, "first", redlatch.LockOptions{}).Release(t.Context())
	synctest.Wait()
	return all, nodes
}

func TestLongTTLIsLearnedFromAQuorumThoughOneNodeIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, nodes := newMarked(t, 3)
		all[0].OnRequest(func(any) { time.Sleep(time.Minute) })
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 250 * time.Millisecond})
		start := time.Now()
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: time.Minute, Wait: redlatch.NoWait})
		// The frozen node may cost as much as in any first round.
		locktest.WantTook(t, start, 0, time.Second)
		if l.TTL() != time.Minute {
			t.Errorf("the lease has a TTL of %v", l.TTL())
		}
		must(t, l.Release(t.Context()))
		all[0].OnRequest(nil)
		time.Sleep(time.Minute)
	})
}

func TestLongTTLOfAClientIsJudgedByTheMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := newMarked(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{TTL: time.Minute})
		if l := locktest.MustLock(t, c, "job", redlatch.LockOptions{}); l.TTL() != time.Minute {
			t.Errorf("the lease has a TTL of %v", l.TTL())
		}
		_, nodes = newMarked(t, 3)
		c = locktest.NewClient(t, nodes, redlatch.Options{TTL: 6 * time.Minute})
		_, err := c.TryLock(context.Background(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrConfig)
	})
}

func TestLongTTLOfAClientIsRefusedWhereNoMarkerCanAllowIt(t *testing.T) {
	_, plain := locktest.NewLinks(t, 3)
	_, guarded := locktest.NewGuarded(3)
	for _, c := range []struct {
		nodes []redlatch.Node
		opts  redlatch.Options
	}{
		{plain, redlatch.Options{TTL: time.Minute}},
		{guarded, redlatch.Options{TTL: time.Minute, Cluster: redlatch.Cluster{MaxTTL: 30 * time.Second}}},
		{guarded, redlatch.Options{TTL: 31 * 24 * time.Hour}},
	} {
		_, err := redlatch.New(c.nodes, &c.opts)
		locktest.WantErr(t, err, redlatch.ErrConfig)
	}
}
