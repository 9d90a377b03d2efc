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

// marked is a link to a node that carries a trusted marker, with cluster
// parameters of its own.
type marked struct {
	*locktest.Link
	guard node.Guard
}

func (m *marked) GuardsAlone() bool { return false }

func (m *marked) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Guard == nil {
		return m.Link.Do(ctx, req)
	}
	asked := *req.Guard
	theirs := m.guard
	theirs.Membership, theirs.Nodes = asked.Membership, asked.Nodes
	if req.Op != node.OpMark && asked == theirs {
		return m.Link.Do(ctx, req)
	}
	// Only the delay of the link is needed: the marker answers.
	reply, err := m.Link.Do(ctx, node.Request{Op: node.OpInspect, Name: "marker"})
	if err != nil {
		return reply, err
	}
	status := node.Granted
	if asked != theirs {
		status = node.Misconfigured
	}
	return node.Reply{Status: status, Guard: &theirs, Now: reply.Now}, nil
}

// newMarked returns links to n nodes that are marked for locks of up to 5 min.
func newMarked(t testing.TB, n int) ([]*locktest.Link, []redlatch.Node) {
	links, nodes := locktest.NewLinks(t, n)
	for i, l := range links {
		nodes[i] = &marked{l, node.Guard{MaxTTL: 5 * time.Minute, Window: 10 * time.Second, Quarantine: 5*time.Minute + 20*time.Second}}
	}
	return links, nodes
}

func TestLongTTLIsLearnedFromAQuorumThoughOneNodeIsFrozen(t *testing.T) {
	for name, deaf := range map[string]bool{"a driver that heeds its context": false, "one that does not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := newMarked(t, 3)
				links[0].Set(func(l *locktest.Link) { l.Deaf = deaf })
				links[0].Freeze()
				defer links[0].Thaw()
				c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 250 * time.Millisecond})
				start := time.Now()
				l, err := c.TryLock(context.Background(), "job", &redlatch.LockOptions{TTL: time.Minute})
				must(t, err)
				// The frozen node may cost as much as in any first round.
				if took := time.Since(start); took > time.Second {
					t.Errorf("the first lock of a minute took %v", took)
				}
				if l.TTL() != time.Minute {
					t.Errorf("the lease has a TTL of %v", l.TTL())
				}
				l.Release(context.Background())
			})
		})
	}
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
	_, err := redlatch.New(plain, &redlatch.Options{TTL: time.Minute})
	locktest.WantErr(t, err, redlatch.ErrConfig)
	_, guarded := newMarked(t, 3)
	_, err = redlatch.New(guarded, &redlatch.Options{TTL: time.Minute, Cluster: redlatch.Cluster{MaxTTL: 30 * time.Second}})
	locktest.WantErr(t, err, redlatch.ErrConfig)
	_, err = redlatch.New(guarded, &redlatch.Options{TTL: 31 * 24 * time.Hour})
	locktest.WantErr(t, err, redlatch.ErrConfig)
}
