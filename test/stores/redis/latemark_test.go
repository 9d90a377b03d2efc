//go:build unix

package redis_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestMarkThatComesLateWritesNothing repeats every marking request of a
// membership change after its operator has stopped waiting, as a network that
// was interrupted can do. In the meantime the membership has been changed back.
func TestMarkThatComesLateWritesNothing(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	addresses := servertest.Addresses(servers)
	abc := addresses[:3]
	abd := []string{addresses[0], addresses[1], addresses[3]}
	old := newClient(t, open(t, abc...), quick)
	must(t, cycle(old))
	var mu sync.Mutex
	type sent struct {
		node node.Guarded
		req  node.Request
	}
	var late []sent
	watched := func(addresses []string) []redlatch.Node {
		nodes := open(t, addresses...)
		for i, n := range nodes {
			guarded := n.(node.Guarded)
			nodes[i] = writing{guarded, func(req *node.Request) {
				mu.Lock()
				defer mu.Unlock()
				late = append(late, sent{guarded, *req})
			}}
		}
		return nodes
	}
	operator, err := redlatch.New(watched(abd), &quick)
	must(t, err)
	t.Cleanup(func() { operator.Close() })
	began := time.Now()
	former := watched(abc)
	if _, err := admin.New(operator).Init(context.Background(), &admin.InitOptions{Former: former}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.New(old).Init(context.Background(), &admin.InitOptions{Former: open(t, abd...)}); err != nil {
		t.Fatal(err)
	}
	if len(late) != 7 { // three were barred, and four marked
		t.Fatalf("%d markings were sent", len(late))
	}
	for _, x := range late {
		// The test does not wait for half a minute: instead, the limit of each
		// request is moved back by as much.
		const limit = 30 * time.Second
		if over := x.req.Until.Sub(began); over < limit/2 || over > limit+10*time.Second {
			t.Errorf("marking %d of %s is carried out for %v", x.req.Mark, x.node, over)
		}
		x.req.Until = x.req.Until.Add(-limit - time.Since(began))
		if reply, err := x.node.Do(context.Background(), x.req); err != nil || reply.Status != node.Stale {
			t.Errorf("marking %d of %s: %v, %v", x.req.Mark, x.node, reply.Status, err)
		}
	}
	for i, s := range servers {
		if m := s.Do("GET", "redlatch:1:marker"); !strings.Contains(m, " membership ") || !strings.HasSuffix(m, servers[2].URL()) && !strings.Contains(m, servers[2].URL()+" ") {
			t.Errorf("server %d is marked %q, and not for the list that was gone back to", i, m)
		}
	}
}

func TestMembershipChangeToANodeThatIsAwayWritesNothing(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	old := newClient(t, open(t, addresses...), quick)
	must(t, cycle(old))
	before := servers[0].Do("GET", "redlatch:1:marker")
	changed := laterClient(t, quick, addresses[0], addresses[1], "redis://127.0.0.1:"+servertest.FreePort(t))
	_, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, addresses...)})
	wantErr(t, err, redlatch.ErrNoQuorum)
	wantText(t, err, "nothing was changed")
	if after := servers[0].Do("GET", "redlatch:1:marker"); after != before {
		t.Errorf("marked %q, and before %q", after, before)
	}
	if err := cycle(old); err != nil {
		t.Errorf("the old membership: %v", err)
	}
}
