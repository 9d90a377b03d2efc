package casnode

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/node"
)

// stampTable is a table that is a Stamper.
type stampTable struct {
	*table
	reads   int
	writes  int
	guesses int // writes without a read
	failed  int // and those of them that were refused
	// lastStamped is the last row that was written without a read, as its writer
	// knows it.
	lastStamped Row
	late        func() // called when a statement that is stamped has been sent, and not executed
}

func newStampTable() *stampTable {
	return &stampTable{table: newTable(func() time.Time { return time.Now().Truncate(time.Microsecond) })}
}

func (s *stampTable) Read(ctx context.Context, name string) (Snapshot, error) {
	s.reads++
	return s.table.Read(ctx, name)
}

func (s *stampTable) Stamps() {}

func (s *stampTable) Swap(ctx context.Context, seen Snapshot, w Write) (bool, Snapshot, error) {
	if !w.Stamped {
		s.writes++
		return s.table.Swap(ctx, seen, w)
	}
	s.guesses++
	if s.late != nil {
		s.late()
	}
	late, sent, next := s.clock().Sub(seen.Now), w.Row, &w.Row
	if late >= 0 && late <= Span {
		next.State = append(binary.BigEndian.AppendUint64(nil, uint64(late.Microseconds())), next.State...)
		if done, _, err := s.table.Swap(ctx, seen, w); done || err != nil {
			s.lastStamped = sent
			return done, Snapshot{}, err
		}
	}
	s.failed++
	present, err := s.table.Read(ctx, next.Name)
	return false, present, err
}

// grant executes a request, which must be granted.
func grant(t testing.TB, n *Node, req node.Request) node.Reply {
	t.Helper()
	r, err := n.Do(t.Context(), req)
	if err != nil || r.Status != node.Granted {
		t.Fatalf("%v of %q by %q: %v, %v", req.Op, req.Name, req.Value, r.Status, err)
	}
	return r
}

// pair acquires, extends and releases a name.
func pair(t testing.TB, n *Node, name string) {
	t.Helper()
	req := acquire("one", node.Token(time.Now().UnixMicro()))
	req.Name = name
	for _, req.Op = range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
		grant(t, n, req)
		time.Sleep(time.Millisecond)
	}
}

func TestRequestThatNobodyContendsForIsOneStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStampTable()
		n := New(s, nil)
		pair(t, n, "job")
		if s.reads != 1 || s.writes != 1 || s.guesses != 2 {
			t.Errorf("a new name: %d reads, %d writes after them, %d writes without; want 1, 1 and 2", s.reads, s.writes, s.guesses)
		}
		for i := range 10 {
			pair(t, n, "job")
			pair(t, n, fmt.Sprint("job ", i))
		}
		if s.reads != 1 || s.writes != 1 {
			t.Errorf("then %d reads and %d writes after them, want none", s.reads-1, s.writes-1)
		}
		// The store's clock is read now and then.
		time.Sleep(2 * clockAge)
		if pair(t, n, "job"); s.reads != 2 {
			t.Errorf("after %v there were %d reads, want one", 2*clockAge, s.reads-1)
		}
	})
}

// TestRowIsHeldForLongerThanItsWriterRemembers has a write come late. The node that
// sent it does not know by how much, and must not let another have the lock before
// it has expired in the store.
func TestRowIsHeldForLongerThanItsWriterRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStampTable()
		n := New(s, nil)
		pair(t, n, "job")
		req := acquire("one", node.Token(time.Now().UnixMicro()))
		req.TTL = 10 * time.Second
		s.late = func() { time.Sleep(Span * 3 / 4) }
		grant(t, n, req)
		if s.late = nil; s.guesses != 3 {
			t.Fatalf("%d writes without a read, want 3", s.guesses)
		}
		expires := time.Now().Add(req.TTL)
		other := acquire("two", req.Token+1)
		for time.Now().Before(expires) {
			if r, err := n.Do(t.Context(), other); err != nil || r.Status != node.Held {
				t.Fatalf("%v before a lock expires: %v, %v; want held", time.Until(expires), r.Status, err)
			}
			time.Sleep(10 * time.Millisecond)
			n.cache.wrote(s.lastStamped, nil, false) // as if nobody had asked
		}
		grant(t, n, other)
	})
}

// TestMemoryAnswersAsAReadWould has requests of three nodes, two of which remember
// what they wrote. The store's clock is set, statements are late, and the server is
// replaced. The answers are those of the rules at the moment of the write.
func TestMemoryAnswersAsAReadWould(t *testing.T) {
	written := 0
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) { written += answersAsARead(t, rand.New(rand.NewPCG(seed, 0))) })
	}
	if written < 150 {
		t.Errorf("%d writes had no read before them: the test shows too little", written)
	}
}

// answersAsARead returns how many writes had no read before them.
func answersAsARead(t *testing.T, rng *rand.Rand) int {
	s := newStampTable()
	var off time.Duration
	s.clock = func() time.Time { return time.Now().Add(off).Truncate(time.Microsecond) }
	nodes := []*Node{New(s, nil), New(s, nil), New(s.table, nil)}
	twin := newTable(func() time.Time { return s.clock() })
	plain := New(twin, nil)
	step := func() {
		switch rng.IntN(30) {
		case 0:
			off += time.Duration(rng.IntN(120)-60) * time.Second
		case 1:
			off += time.Duration(rng.IntN(400)-200) * time.Millisecond
		case 2:
			time.Sleep(time.Duration(rng.IntN(150)) * time.Second)
		case 3:
			if rng.IntN(8) == 0 {
				s.server += "0"
				twin.server = s.server
			}
		case 4, 5, 6, 7, 8, 9:
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		default:
			time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
		}
	}
	s.late = step
	guard := node.Guard{Membership: "list", MaxTTL: time.Minute, Window: time.Hour, Quarantine: 5 * time.Second}
	mark := node.MarkRequest{Mark: node.MarkFresh, Guard: &guard}
	for range 60 {
		req := acquire(fmt.Sprint(rng.IntN(2)), node.Token(time.Now().Add(off).UnixMicro()))
		req.Name, req.Guard = fmt.Sprint("job ", rng.IntN(2)), &guard
		req.Op = []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease}[rng.IntN(3)]
		req.TTL = time.Duration(1+rng.IntN(60)) * time.Second
		req.Retention = time.Duration(1+rng.IntN(300)) * time.Second
		req.Wait, req.Ticket = rng.IntN(8) == 0, int64(req.Token)
		if rng.IntN(16) == 0 {
			req.Keep = time.Duration(1+rng.IntN(30)) * time.Second
		}
		if rng.IntN(16) == 0 {
			req.NoRepair = time.Duration(1+rng.IntN(30)) * time.Second
		}
		if mark.Mark == node.MarkFresh || rng.IntN(20) == 0 {
			if r, err := nodes[0].Mark(t.Context(), mark); err != nil {
				t.Fatal(err)
			} else if want, err := plain.Mark(t.Context(), mark); err != nil || r.Status != want.Status {
				t.Fatalf("marked: %v, want %v, %v", r.Status, want.Status, err)
			}
			mark.Mark = node.MarkWrite
		}
		r, err := nodes[max(0, rng.IntN(8)-5)].Do(t.Context(), req)
		must(t, err)
		want, err := plain.Do(t.Context(), req)
		must(t, err)
		if r.Status != want.Status || r.Fence != want.Fence || r.Rank != want.Rank {
			t.Fatalf("%v by %s: %v, fence %v, rank %d; want %v, fence %v, rank %d", req.Op, req.Value, r.Status, r.Fence, r.Rank, want.Status, want.Fence, want.Rank)
		}
		var looks [2]string
		for i, n := range []*Node{nodes[2], plain} {
			l, err := n.Look(t.Context(), req.Name)
			must(t, err)
			looks[i] = fmt.Sprintf("%+v", l)
		}
		if looks[0] != looks[1] {
			t.Fatalf("after %v by %s:\n%s, want\n%s", req.Op, req.Value, looks[0], looks[1])
		}
		step()
	}
	return s.guesses - s.failed
}

// TestStoreThatIsFarAwayIsReadFirst has writes arrive later than the span.
func TestStoreThatIsFarAwayIsReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStampTable()
		s.late = func() { time.Sleep(2 * Span) }
		n := New(s, nil)
		begin := time.Now()
		for i := range 10_000 { // 30 s
			pair(t, n, fmt.Sprint("job ", i%10))
		}
		if most := int(time.Since(begin)/farFor) + 1; s.guesses > most {
			t.Errorf("%d writes were too late in %v, want %d at most", s.guesses, time.Since(begin), most)
		}
	})
}

// TestMemoryIsUsedOnlyWhereNobodyElseWrites has two nodes take turns. A try that is
// in vain costs a round trip, so there are few.
func TestMemoryIsUsedOnlyWhereNobodyElseWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStampTable()
		a, b := New(s, nil), New(s, nil)
		for range 500 { // 3 s
			pair(t, a, "job")
			pair(t, b, "job")
		}
		if s.failed > 8 {
			t.Errorf("of %d writes without a read %d were refused", s.guesses, s.failed)
		}
	})
}
