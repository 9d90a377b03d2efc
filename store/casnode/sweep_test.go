package casnode

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func sweepAll(t testing.TB, n *Node) {
	t.Helper()
	must(t, n.Sweep(t.Context()))
}

// TestSweepRemovesWhatIsOverAndNothingElse has names whose time is over, names that
// are held, a damaged row and a marker.
func TestSweepRemovesWhatIsOverAndNothingElse(t *testing.T) {
	now := time.Now()
	s := newTable(func() time.Time { return now })
	n := New(s, nil)
	use := func(name string, ttl time.Duration) {
		req := acquire("one", node.Token(now.UnixMicro()))
		req.Name, req.TTL, req.Retention = name, ttl, ttl
		grant(t, n, req)
	}
	const names = 5 * sweepStep
	for i := range names {
		use(fmt.Sprint("over ", i), time.Second)
		use(fmt.Sprint("live ", i), time.Hour)
	}
	use("damaged", time.Second)
	s.damage("damaged", []byte{99})
	_, err := n.Mark(t.Context(), node.MarkRequest{Mark: node.MarkFresh, Guard: &node.Guard{Membership: "list", Quarantine: time.Minute}})
	must(t, err)
	before := len(s.rows)
	if sweepAll(t, n); len(s.rows) != before {
		t.Errorf("%d rows were removed whose time is not over for a minute", before-len(s.rows))
	}
	now = now.Add(sweepAfter + time.Second)
	server := s.server
	s.server = "another"
	seen, _ := n.read(t.Context(), "over 1")
	s.server = server
	if err := s.Remove(t.Context(), seen, []Row{seen.Row}); err != nil || s.rows["over 1"].Version == "" {
		t.Errorf("a row was removed by what another server showed, %v", err)
	}
	if sweepAll(t, n); len(s.rows) != names+2 {
		t.Errorf("%d rows are left, want %d", len(s.rows), names+2)
	}
	if _, left := s.rows["damaged"]; !left || s.rows[MarkerName].Version == "" {
		t.Error("the damaged row, or the marker, was removed")
	}
}

// TestNamesUsedOnceDoNotFillTheStore uses each name for one request, by nodes that
// end after a few: none of them knows how far the others have swept.
func TestNamesUsedOnceDoNotFillTheStore(t *testing.T) {
	now := time.Now()
	s := newTable(func() time.Time { return now })
	const names, live, each = 20000, 100, 4
	var n *Node
	for i := range names {
		if i%each == 0 {
			n = New(s, nil)
		}
		req := acquire("one", node.Token(now.UnixMicro()))
		req.Name, req.TTL, req.Retention = fmt.Sprintf("job/%06d", i), time.Second, time.Second
		for _, req.Op = range []node.Op{node.OpAcquire, node.OpRelease} {
			grant(t, n, req)
		}
		now = now.Add((sweepAfter + time.Second) / live)
	}
	if most := 20 * live; len(s.rows) > most {
		t.Errorf("%d rows after %d names of which %d are live, want %d at most", len(s.rows), names, live, most)
	}
}
