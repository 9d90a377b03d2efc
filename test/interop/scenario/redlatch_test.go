//go:build unix

package scenario

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"

	"github.com/redlatch/redlatch/test/interop/foreign"
)

// doctoredNode lets redlatch break a rule: before each request of one
// kind it changes the key by force, so that the request succeeds.
type doctoredNode struct {
	node.Node
	server *servertest.Server
	op     node.Op
	force  func(s *servertest.Server, req node.Request)
}

func (n *doctoredNode) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Op == n.op {
		n.force(n.server, req)
	}
	return n.Node.Do(ctx, req)
}

// TestRedlatchIsFoundOutWhenItBreaksARule plays the scenarios with a redlatch
// that takes, frees or extends locks of others. The judge must report that it
// was redlatch.
func TestRedlatchIsFoundOutWhenItBreaksARule(t *testing.T) {
	t.Parallel()
	remove := func(s *servertest.Server, req node.Request) { s.Do("DEL", req.Name) }
	replace := func(s *servertest.Server, req node.Request) { s.Do("SET", req.Name, req.Value, "PX", "10000") }
	client := foreign.InProcess()[0]
	for what, c := range map[string]struct {
		op       node.Op
		force    func(*servertest.Server, node.Request)
		scenario string
	}{
		"takes what another holds":   {node.OpAcquire, remove, "excludes"},
		"frees what another holds":   {node.OpRelease, remove, "our loss"},
		"extends what another holds": {node.OpExtend, replace, "our loss"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			doctor := func(n node.Node, s *servertest.Server) node.Node {
				return &doctoredNode{Node: n, server: s, op: c.op, force: c.force}
			}
			row := play(Part{Client: client, Nodes: 1, Only: []string{c.scenario}, doctor: doctor}, func(string) {})
			if cell := row.Cells[c.scenario]; row.Err != nil || cell.Verdict != OurFall {
				t.Errorf("%s: %s, %s, %v; want that redlatch is found out", c.scenario, cell.Verdict, cell.Text, row.Err)
			} else {
				t.Log(cell.Text)
			}
		})
	}
}
