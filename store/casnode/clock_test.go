package casnode

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
)

// ownClock is a table whose locks expire by another clock than that of its tokens.
// It keeps fences.
type ownClock struct {
	*table
	elapsed func() time.Duration
	floor   node.Token
}

func (s *ownClock) Read(ctx context.Context, name string) (Snapshot, error) {
	seen, err := s.table.Read(ctx, name)
	seen.Offset = seen.Now.Sub(time.UnixMicro(0).Add(s.elapsed()))
	seen.KeepsFences, seen.Floor = true, s.floor
	return seen, err
}

// Remove raises the floor, too.
func (s *ownClock) Remove(ctx context.Context, seen Snapshot, rows []Row) error {
	s.floor = max(s.floor, seen.Floor)
	return s.table.Remove(ctx, seen, rows)
}

// TestConformanceByAClockOfItsOwn has locks expire by a clock that is years behind. That
// the wall clock may be set is tested in store/sqlite.
func TestConformanceByAClockOfItsOwn(t *testing.T) {
	wall, elapsed := time.Now().Truncate(time.Microsecond), time.Hour
	nodetest.Run(t, nodetest.Harness{
		Open: func(testing.TB) (a, b node.Node) {
			s := &ownClock{table: newTable(func() time.Time { return wall }), elapsed: func() time.Duration { return elapsed }}
			return New(s, nil), New(s, nil)
		},
		KeepsFences: true,
		Advance: func(d time.Duration) {
			wall, elapsed = wall.Add(d.Truncate(time.Microsecond)), elapsed+d.Truncate(time.Microsecond)
		},
	})
}

func TestWaiterThatAsksAgainWritesOnlyToRenewItsPlace(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	s := newTable(func() time.Time { return now })
	n := New(s, nil)
	token := node.Token(now.UnixMicro())
	waiter := func(value string, ticket int64) node.Request {
		req := acquire(value, token+1)
		req.Wait, req.Ticket = true, ticket
		return req
	}
	for _, req := range []node.Request{acquire("holder", token), waiter("first", 1), waiter("second", 2)} {
		_, err := n.Do(t.Context(), req)
		must(t, err)
	}
	writes := s.swaps
	ask := func(value string, ticket int64) {
		t.Helper()
		r, err := n.Do(t.Context(), waiter(value, ticket))
		if err != nil || r.Status != node.Held || r.Rank != int(ticket) {
			t.Fatalf("%v, rank %d, %v", r.Status, r.Rank, err)
		}
	}
	for range 4 {
		now = now.Add(node.WaiterLease / 10)
		ask("first", 1)
		ask("second", 2)
	}
	if s.swaps != writes {
		t.Errorf("%d writes of waiters that ask again at once", s.swaps-writes)
	}
	now = now.Add(node.WaiterLease / 5)
	if ask("first", 1); s.swaps != writes+1 {
		t.Errorf("%d writes to renew a place, want 1", s.swaps-writes)
	}
	now = now.Add(node.WaiterLease * 6 / 10)
	ask("second", 2) // the first has its place
}
