package admin_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// sitting is a link to a node that can be marked and is then in quarantine.
type sitting struct {
	*locktest.Link
	mu     sync.Mutex
	marked *node.Guard
	until  time.Time
}

func (s *sitting) GuardsAlone() bool { return false }

func (s *sitting) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Op != node.OpMark {
		return s.Link.Do(ctx, req)
	}
	// Only the delay of the link is needed: the marker answers.
	if reply, err := s.Link.Do(ctx, node.Request{Op: node.OpInspect, Name: "marker"}); err != nil {
		return reply, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.marked == nil {
		if req.Mark == node.MarkRead {
			return node.Reply{Status: node.Absent, Now: now}, nil
		}
		s.marked, s.until = req.Guard, now.Add(req.Guard.Quarantine)
	}
	if left := s.until.Sub(now); left > 0 {
		return node.Reply{Status: node.Quarantined, Value: node.ReasonNew, Left: left, Guard: s.marked, Now: now}, nil
	}
	return node.Reply{Status: node.Granted, Guard: s.marked, Now: now, TrustedFrom: s.until}, nil
}

// forget makes the node lose its marker.
func (s *sitting) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = nil
}

func newSitting(t testing.TB, n int) ([]*sitting, *redlatch.Client) {
	links, nodes := locktest.NewLinks(t, n)
	all := make([]*sitting, n)
	for i, l := range links {
		all[i] = &sitting{Link: l}
		nodes[i] = all[i]
	}
	return all, locktest.NewClient(t, nodes, redlatch.Options{})
}

const quarantine = 32 * time.Second // the default

func TestInitThatWaitsReturnsWhenAllNodesAreTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newSitting(t, 3)
		start := time.Now()
		calls, last := 0, time.Hour
		states, err := admin.New(c).Init(context.Background(), &admin.InitOptions{Wait: true, Progress: func(states []admin.NodeState) {
			calls++
			for _, s := range states {
				if s.Left > last {
					t.Errorf("after %v it was said that %v are left", last, s.Left)
				}
			}
			last = states[0].Left
		}})
		must(t, err)
		for _, s := range states {
			if !s.Trusted {
				t.Errorf("%s: %+v", s.Node, s)
			}
		}
		if took := time.Since(start); took < quarantine || took > quarantine+time.Second {
			t.Errorf("it took %v, want the quarantine of %v", took, quarantine)
		}
		if calls < 5 || calls > 60 {
			t.Errorf("the progress was reported %d times", calls)
		}
		// They are trusted, so the next call does not wait.
		start = time.Now()
		if _, err := admin.New(c).Init(context.Background(), &admin.InitOptions{Wait: true}); err != nil || time.Since(start) > time.Second {
			t.Errorf("on trusted nodes it took %v: %v", time.Since(start), err)
		}
	})
}

// TestReadyWaitsUntilEveryExtendedLockIsBack: after the quarantine a whole MaxTTL, in
// which each lock is extended three times at least.
func TestReadyWaitsUntilEveryExtendedLockIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const settling = 30 * time.Second // the default MaxTTL
		_, c := newSitting(t, 3)
		operator := admin.New(c)
		ready := func() bool {
			for _, r := range operator.Ready(t.Context()) {
				if !r.Ready {
					return false
				}
			}
			return true
		}
		start := time.Now()
		for !ready() {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(start); took < quarantine+settling || took > quarantine+settling+time.Second {
			t.Errorf("new nodes are ready after %v, want %v", took, quarantine+settling)
		}
	})
}

func TestInitThatWaitsMarksAgainWhatIsLostMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newSitting(t, 3)
		start := time.Now()
		time.AfterFunc(20*time.Second, nodes[1].forget)
		time.AfterFunc(22*time.Second, nodes[2].Freeze)
		time.AfterFunc(26*time.Second, nodes[2].Thaw)
		if _, err := admin.New(c).Init(context.Background(), &admin.InitOptions{Wait: true}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 20*time.Second+quarantine {
			t.Errorf("a node lost its data after 20s, and after %v it was all over", took)
		}
	})
}

func TestInitThatWaitsEndsWithItsContextAndSaysHowItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := newSitting(t, 3)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		states, err := admin.New(c).Init(ctx, &admin.InitOptions{Wait: true})
		locktest.WantErr(t, err, context.DeadlineExceeded)
		for _, s := range states {
			if s.Err != nil || s.Left == 0 {
				t.Errorf("%s: %+v", s.Node, s)
			}
		}
	})
}

func TestInitDoesNotWaitWhereANodeIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, c := newSitting(t, 3)
		nodes[0].Cut()
		start := time.Now()
		_, err := admin.New(c).Init(context.Background(), &admin.InitOptions{Wait: true})
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v to say that a node does not answer", took)
		}
		if nodes[1].marked != nil {
			t.Error("a node without a marker was marked, though the missing one may contradict")
		}
	})
}
