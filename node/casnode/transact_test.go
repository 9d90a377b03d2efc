package casnode

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
)

// txTable is a Transactor in memory. Its locks expire by another clock than that
// of its tokens, and it keeps fences.
type txTable struct {
	*table
	elapsed func() time.Duration
	floor   node.Token
	writes  int
	fails   error
}

func (s *txTable) snapshot(r Row) Snapshot {
	now := s.clock()
	return Snapshot{Row: r, Now: now, Offset: now.Sub(time.UnixMicro(0).Add(s.elapsed())), KeepsFences: true, Floor: s.floor}
}

func (s *txTable) Read(_ context.Context, name string) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(s.rows[name]), nil
}

func (s *txTable) Transact(_ context.Context, req node.Request, decide func(Snapshot) (*Row, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return s.fails
	}
	next, err := decide(s.snapshot(s.rows[req.Name]))
	if err != nil || next == nil {
		return err
	}
	s.writes++
	next.Version = "any"
	s.rows[req.Name] = *next
	return nil
}

// Remove raises the floor, too.
func (s *txTable) Remove(ctx context.Context, seen Snapshot, rows []Row) error {
	s.floor, seen.Server = max(s.floor, seen.Floor), s.server
	return s.table.Remove(ctx, seen, rows)
}

// newTxTable returns a table whose wall clock is set forward or back by each
// Advance.
func newTxTable() (s *txTable, advance func(time.Duration)) {
	wall, elapsed, step := time.Now().Truncate(time.Microsecond), time.Hour, time.Hour
	s = &txTable{table: newTable(func() time.Time { return wall }), elapsed: func() time.Duration { return elapsed }}
	return s, func(d time.Duration) {
		d = d.Truncate(time.Microsecond)
		elapsed += d
		wall = wall.Add(d + step)
		step = -step
	}
}

func TestConformanceOfTransactions(t *testing.T) {
	var advance func(time.Duration)
	nodetest.Run(t, nodetest.Harness{
		Open: func(testing.TB) (a, b node.Node) {
			s, pass := newTxTable()
			advance = pass
			// Tokens and marks go by the wall clock, so it is not set here.
			wall := s.clock()
			began := s.elapsed()
			s.clock = func() time.Time { return wall.Add(s.elapsed() - began) }
			return NewTransacting(s), NewTransacting(s)
		},
		Queues: true, Shares: true, Marks: true, Lists: true, KeepsFences: true,
		Advance: func(d time.Duration) { advance(d) },
	})
}

// TestLocksExpireByTheirOwnClock sets the wall clock while a lock is held.
func TestLocksExpireByTheirOwnClock(t *testing.T) {
	s, advance := newTxTable()
	n := NewTransacting(s)
	ask := func(op node.Op, value string) node.Reply {
		t.Helper()
		req := acquire(value, 0)
		req.Op = op
		r, err := n.Do(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask(node.OpAcquire, "one")
	for left := time.Minute; left > 0; left -= 20 * time.Second {
		if r := ask(node.OpAcquire, "two"); r.Status != node.Held || r.Left != left || !r.Now.Equal(s.clock()) {
			t.Errorf("%v with %v left, want %v", r.Status, r.Left, left)
		}
		advance(20 * time.Second)
	}
	if r := ask(node.OpAcquire, "two"); r.Status != node.Granted {
		t.Errorf("after its time: %v", r.Status)
	}
	ask(node.OpRelease, "two")
	advance(sweepAfter)
	if sweepAll(t, n); len(s.rows) != 0 {
		t.Errorf("%d rows are left of locks without a token", len(s.rows))
	}
}

// TestWaiterThatAsksAgainWritesOnlyToRenewItsPlace is for both kinds of stores.
func TestWaiterThatAsksAgainWritesOnlyToRenewItsPlace(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	swapping := newTable(func() time.Time { return now })
	transacting := &txTable{table: newTable(func() time.Time { return now }), elapsed: func() time.Duration { return time.Duration(now.UnixNano()) }}
	for name, c := range map[string]struct {
		n      *Node
		writes *int
	}{
		"swap":     {New(swapping, nil), &swapping.swaps},
		"transact": {NewTransacting(transacting), &transacting.writes},
	} {
		token := node.Token(now.UnixMicro())
		waiter := func(value string, ticket int64) node.Request {
			req := acquire(value, token+1)
			req.Wait, req.Ticket = true, ticket
			return req
		}
		for _, req := range []node.Request{acquire("holder", token), waiter("first", 1), waiter("second", 2)} {
			if _, err := c.n.Do(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		writes := *c.writes
		ask := func(value string, ticket int64) {
			t.Helper()
			r, err := c.n.Do(t.Context(), waiter(value, ticket))
			if err != nil || r.Status != node.Held || r.Rank != int(ticket) {
				t.Fatalf("%s: %v, rank %d, %v", name, r.Status, r.Rank, err)
			}
		}
		for range 4 {
			now = now.Add(node.WaiterLease / 10)
			ask("first", 1)
			ask("second", 2)
		}
		if *c.writes != writes {
			t.Errorf("%s: %d writes of waiters that ask again at once", name, *c.writes-writes)
		}
		now = now.Add(node.WaiterLease / 5)
		if ask("first", 1); *c.writes != writes+1 {
			t.Errorf("%s: %d writes to renew a place, want 1", name, *c.writes-writes)
		}
		now = now.Add(node.WaiterLease * 6 / 10)
		ask("second", 2) // the first has its place
	}
}

func TestErrorOfATransactionIsPassedOn(t *testing.T) {
	s, _ := newTxTable()
	for _, want := range []error{errors.New("down"), node.ErrUnsent} {
		s.fails = want
		_, err := NewTransacting(s).Do(t.Context(), acquire("one", 0))
		if !errors.Is(err, want) || errors.Is(err, node.ErrUnsent) != (want == node.ErrUnsent) {
			t.Errorf("%v became %v", want, err)
		}
	}
}
