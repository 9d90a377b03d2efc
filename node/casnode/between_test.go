package casnode

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestWriteNeedsTheMarkerAndTheServerThatWereRead changes the marker or the server
// between a read and its write: the request must be decided anew.
func TestWriteNeedsTheMarkerAndTheServerThatWereRead(t *testing.T) {
	guard := node.Guard{Membership: "list", MaxTTL: time.Minute, Window: time.Hour, Quarantine: 2 * time.Minute}
	marked := node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &guard}
	for _, c := range []struct {
		name   string
		change func(s *table, n *Node)
	}{
		{"another server", func(s *table, _ *Node) { s.server = "two" }},
		{"another marker", func(_ *table, n *Node) {
			changed := marked
			next := guard
			next.Generation = 2
			changed.Mark, changed.Guard = node.MarkReplace, &next
			if _, err := n.Do(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
		}},
		{"a table that was emptied", func(s *table, _ *Node) { clear(s.rows) }},
	} {
		for _, used := range []bool{false, true} {
			s := newTable(time.Now)
			n := New(s, nil)
			if _, err := n.Do(t.Context(), marked); err != nil {
				t.Fatal(err)
			}
			req := acquire("one", node.Token(time.Now().UnixMicro()))
			if used { // the write updates a row instead of inserting one
				before := req
				before.Op = node.OpRelease
				if _, err := n.Do(t.Context(), before); err != nil {
					t.Fatal(err)
				}
				req.Token++
			}
			once := false
			s.between = func() {
				if !once {
					once = true
					c.change(s, n)
				}
			}
			req.Guard = &guard
			if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Quarantined {
				t.Errorf("%s, a row before %v: %v, %v; want quarantined", c.name, used, r.Status, err)
			}
		}
	}
}

// TestTableThatWasDroppedIsPreparedAgain drops the table before a read, and
// between a read and its write. The new one has no marker, and is not trusted.
func TestTableThatWasDroppedIsPreparedAgain(t *testing.T) {
	guard := node.Guard{Membership: "list", MaxTTL: time.Minute, Window: time.Hour, Quarantine: 2 * time.Minute}
	for _, between := range []bool{false, true} {
		s := newTable(time.Now)
		n := New(s, nil)
		if _, err := n.Do(t.Context(), node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &guard}); err != nil {
			t.Fatal(err)
		}
		once := false
		s.between = func() {
			if between && !once {
				once = true
				s.drop()
			}
		}
		if !between {
			s.drop()
		}
		req := acquire("one", node.Token(time.Now().UnixMicro()))
		req.Guard = &guard
		if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Quarantined {
			t.Errorf("dropped before the write %v: %v, %v; want quarantined", between, r.Status, err)
		}
		if s.prepared != 2 {
			t.Errorf("prepared %d times, want 2", s.prepared)
		}
	}
}
