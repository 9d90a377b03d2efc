package admin_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

func TestProbeMeasuresEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: time.Second})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 20 * time.Second})
		synctest.Wait()
		links[0].Set(func(l *locktest.Link) { l.Out = 40 * time.Millisecond })
		links[1].Freeze()
		links[2].Cut()
		before := links[0].Count(node.OpInspect)
		start := time.Now()
		p := admin.New(c).Probe(t.Context())
		if took := time.Since(start); took > 1200*time.Millisecond {
			t.Errorf("it took %v, with a node time limit of a second", took)
		}
		if len(p.Nodes) != 3 || p.Answered != 1 || p.Need != 2 || p.Guarded || p.Window != 10*time.Second {
			t.Errorf("the pulse is %+v", p)
		}
		if n := p.Nodes[0]; n.Err != nil || n.RoundTrip != 40*time.Millisecond || n.ClockError != 20*time.Millisecond || n.Clock != 20*time.Millisecond {
			t.Errorf("the slow node's is %+v", n) // it answers at the end of the 40 ms
		}
		if n := p.Nodes[1]; !errors.Is(n.Err, redlatch.ErrNodeTimeout) {
			t.Errorf("the frozen node's is %+v", n)
		}
		if n := p.Nodes[2]; n.Err == nil || !strings.Contains(n.Err.Error(), "no route") {
			t.Errorf("the other node's is %+v", n)
		}
		if sent := links[0].Count(node.OpInspect) - before; sent != 1 {
			t.Errorf("the node was asked %d times", sent)
		}
	})
}

// TestListAnsweringDoesNotWaitForTheSilent: a node that did not answer the probe
// is not asked for its locks.
func TestListAnsweringDoesNotWaitForTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: time.Second})
		lease := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 20 * time.Second})
		synctest.Wait()
		a := admin.New(c)
		links[1].Freeze()
		p := a.Probe(t.Context())
		start := time.Now()
		s, err := a.ListAnswering(t.Context(), p)
		if took := time.Since(start); err != nil || took > 100*time.Millisecond {
			t.Fatalf("it took %v: %v", took, err)
		}
		if len(s.Failed) != 1 || len(s.Locks) != 1 || !s.Locks[0].Held || s.Locks[0].Holders[0].Token != lease.Token() || s.Locks[0].State() != admin.StateHeld {
			t.Errorf("listed are %+v", s)
		}
		links[2].Cut()
		if s, err = a.ListAnswering(t.Context(), a.Probe(t.Context())); !errors.Is(err, redlatch.ErrNoQuorum) || len(s.Failed) != 2 || s.Locks[0].State() != admin.StateUnknown {
			t.Errorf("with one node: %+v, %v", s, err)
		}
		synctest.Wait()
	})
}
