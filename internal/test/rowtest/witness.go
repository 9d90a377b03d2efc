//go:build unix

package rowtest

import (
	"context"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// oneWitness changes the membership from a, b, c to a, b, d while c is down. Then
// c is back, b has lost its table, and a cannot be reached: an init for the old
// membership must not mark b on the word of c. b and c are databases, a and d are
// Redis servers.
func oneWitness(t *testing.T, h Harness) {
	b, c := h.Start(t), h.Start(t)
	servers := servertest.Redis(t, 2)
	toA, toC := servertest.NewProxy(t, servers[0]), servertest.NewProxy(t, c)
	redis := func(address string) redlatch.Node {
		n, err := direct.Open(address, nil)
		check.Must(t, err)
		return n
	}
	list := func(last redlatch.Node) []redlatch.Node {
		return []redlatch.Node{redis(toA.URL()), h.node(t, b.DSN(), Settings{Name: "b"}), last}
	}
	old := func() []redlatch.Node { return list(h.node(t, c.Through(toC.Addr()), Settings{Name: "c"})) }
	use(t, newClient(t, bounds(short), old()...), "job")
	nobody := "127.0.0.1:" + servertest.FreePort(t)
	toC.LeadTo(nobody)
	toC.Reset()
	changed := newClient(t, later(bounds(short)), list(redis(servers[1].URL()))...)
	if _, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: old()}); err != nil {
		t.Fatal(err)
	}
	use(t, changed, "job")
	toC.LeadTo(c.Addr())
	mustExec(t, h.operator(t, b), "DELETE FROM redlatch_lock")
	toA.LeadTo(nobody)
	toA.Reset()
	again := old()
	_, err := admin.New(newClient(t, later(bounds(short)), again...)).Init(context.Background(), nil)
	if err == nil || !strings.Contains(err.Error(), "1 of 3 nodes confirm this membership, where 2 are needed") || !strings.Contains(err.Error(), toA.URL()) {
		t.Errorf("on the word of one node: %v", err)
	}
	marker := do(t, again[1], node.Request{Op: node.OpMark, Mark: node.MarkRead, Guard: &node.Guard{}})
	if marker.Guard != nil {
		t.Errorf("b is marked for %s", marker.Guard.Nodes)
	}
}
