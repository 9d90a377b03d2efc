package casnode

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestWriteNeedsTheMarkerAndTheServerThatWereRead changes the marker or the server
// between a read and its write: the request must be decided anew. A table that is
// dropped, then or before the read, is prepared again; the new one has no marker, and is
// not trusted.
func TestWriteNeedsTheMarkerAndTheServerThatWereRead(t *testing.T) {
	guard := node.Guard{Membership: "list", MaxTTL: time.Minute, Window: time.Hour, Quarantine: 2 * time.Minute}
	other := guard
	other.Generation = 2
	mark := func(n *Node, what node.Mark, g *node.Guard) {
		_, err := n.Mark(t.Context(), node.MarkRequest{Mark: what, Guard: g})
		must(t, err)
	}
	for _, c := range []struct {
		name     string
		change   func(s *table, n *Node)
		before   bool // the read
		prepared int
	}{
		{"another server", func(s *table, _ *Node) { s.server = "two" }, false, 1},
		{"another marker", func(_ *table, n *Node) { mark(n, node.MarkReplace, &other) }, false, 1},
		{"a table that was emptied", func(s *table, _ *Node) { clear(s.rows) }, false, 1},
		{"a table that was dropped", func(s *table, _ *Node) { s.drop() }, false, 2},
		{"a table that was dropped before", func(s *table, _ *Node) { s.drop() }, true, 2},
	} {
		for _, used := range []bool{false, true} {
			s := newTable(time.Now)
			n := New(s, nil)
			mark(n, node.MarkFresh, &guard)
			req := acquire("one", node.Token(time.Now().UnixMicro()))
			if used { // the write updates a row instead of inserting one
				before := req
				before.Op = node.OpRelease
				_, err := n.Do(t.Context(), before)
				must(t, err)
				req.Token++
			}
			if c.before {
				c.change(s, n)
			} else {
				s.next(func() { c.change(s, n) })
			}
			req.Guard = &guard
			if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Quarantined || s.prepared != c.prepared {
				t.Errorf("%s, a row before %v: %v, %v; want quarantined; prepared %d times, want %d", c.name, used, r.Status, err, s.prepared, c.prepared)
			}
		}
	}
}
