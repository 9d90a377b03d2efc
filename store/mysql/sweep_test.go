//go:build unix

package mysql_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// TestSweepGoesByTheServersClock has the server's clock be three hours behind the
// client's, and three hours ahead. A row that was over two minutes before goes, and
// the row of a lock that is held stays.
func TestSweepGoesByTheServersClock(t *testing.T) { onBoth(t, sweepsByTheClock) }

func sweepsByTheClock(t *testing.T, p product) {
	for _, off := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		ctx := context.Background()
		open := func(off time.Duration) *mysql.Node {
			n, err := mysql.Open(p.shared(t), &mysql.Options{Table: "swept"})
			must(t, err)
			t.Cleanup(func() { n.Close() })
			if _, err := n.Do(ctx, node.Request{Op: node.OpInspect, Name: "job"}); err != nil {
				t.Fatal(err)
			}
			mysql.ShiftClock(n, off)
			return n
		}
		take := func(n *mysql.Node, req node.Request) {
			if r, err := n.Do(ctx, req); err != nil || r.Status != node.Granted {
				t.Fatal(r.Status, err)
			}
		}
		clock := time.Now().Add(off)
		before := clock.Add(-2 * time.Minute)
		held, over := acquire("one"), acquire("one")
		held.Token, over.Token = node.Token(clock.UnixMicro()), node.Token(before.UnixMicro())
		over.Name = "over"
		over.TTL, over.Retention = time.Millisecond, time.Millisecond
		take(open(off-2*time.Minute), over)
		n := open(off)
		left := map[string]bool{"over": true}
		for end := time.Now().Add(time.Minute); left["over"] && time.Now().Before(end); {
			held.Token++
			take(n, held) // some of the writes sweep
			left = map[string]bool{}
			must(t, n.Walk(ctx, func(name string) { left[name] = true }))
		}
		if !left["job"] || left["over"] {
			t.Errorf("the server's clock is off by %v: after sweeps there is %v, want job alone", off, left)
		}
		exec(t, p.shared(t), "DROP TABLE swept")
	}
}

// TestSweepLeavesRowsThatHaveChanged removes two rows of which one has changed
// since.
func TestSweepLeavesRowsThatHaveChanged(t *testing.T) { onBoth(t, sweepsUnchanged) }

func sweepsUnchanged(t *testing.T, p product) {
	n, err := mysql.Open(p.shared(t), &mysql.Options{Table: "removed"})
	must(t, err)
	defer n.Close()
	for _, name := range []string{"over", "changed", "live"} {
		req := acquire("one")
		req.Name = name
		if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
			t.Fatal(r.Status, err)
		}
	}
	change := func() { exec(t, p.shared(t), "UPDATE removed SET version = 'other' WHERE name = 'changed'") }
	must(t, mysql.Remove(t.Context(), n, change, "over", "changed"))
	left := ""
	if err := n.Walk(t.Context(), func(name string) { left += " " + name }); err != nil || left != " changed live" {
		t.Errorf("%q are left, %v", left, err)
	}
}
