package casnode

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
)

// table is a Store in memory.
type table struct {
	mu     sync.Mutex
	rows   map[string]Row
	clock  func() time.Time
	server string

	between func()                // called after a read, without the mutex
	refuse  func() bool           // a swap fails as if another came between
	broken  func(swap bool) error // what a statement returns instead
	swaps   int

	gone     bool // the table was dropped
	prepared int  // how often the table was prepared
}

func newTable(clock func() time.Time) *table {
	return &table{rows: map[string]Row{}, clock: clock, server: "one"}
}

func (s *table) Prepare(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared++
	s.gone = false
	return nil
}

// next has f be called after the next read, without the mutex.
func (s *table) next(f func()) {
	s.between = func() {
		s.between = nil
		f()
	}
}

// drop drops the table.
func (s *table) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.rows)
	s.gone = true
}

func (s *table) Read(_ context.Context, name string) (Snapshot, error) {
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return Snapshot{}, ErrUnprepared
	}
	if s.broken != nil {
		if err := s.broken(false); err != nil {
			s.mu.Unlock()
			return Snapshot{}, err
		}
	}
	snap := Snapshot{Row: s.rows[name], Marker: s.rows[MarkerName], Now: s.clock(), Server: s.server}
	between := s.between
	s.mu.Unlock()
	if between != nil {
		between()
	}
	return snap, nil
}

func (s *table) Swap(_ context.Context, seen Snapshot, w Write) (done bool, present Snapshot, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, err = s.swap(seen, w.Row)
	return done, present, err
}

func (s *table) swap(seen Snapshot, next Row) (bool, error) {
	s.swaps++
	if s.gone {
		return false, ErrUnprepared
	}
	if s.broken != nil {
		if err := s.broken(true); err != nil {
			return false, err
		}
	}
	if s.rows[next.Name].Version != seen.Row.Version || s.rows[MarkerName].Version != seen.Marker.Version || s.server != seen.Server ||
		s.refuse != nil && s.refuse() {
		return false, nil
	}
	s.rows[next.Name] = next
	return true, nil
}

func (s *table) Scan(_ context.Context, after string, limit int) (all []Row, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, r := range s.rows {
		if name > after && name != MarkerName {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(limit, len(all))], nil
}

func (s *table) Remove(_ context.Context, seen Snapshot, rows []Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		if s.rows[r.Name].Version == r.Version && s.server == seen.Server {
			delete(s.rows, r.Name)
		}
	}
	return nil
}

func (s *table) String() string { return "table" }
func (s *table) Close() error   { return nil }

func TestConformance(t *testing.T) {
	for name, refuse := range map[string]func() bool{
		"alone":             nil,
		"with others at it": func() bool { return rand.N(3) == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().Truncate(time.Microsecond)
			nodetest.Run(t, nodetest.Harness{
				Open: func(testing.TB) (a, b node.Node) {
					s := newTable(func() time.Time { return now })
					s.refuse = refuse
					return New(s, nil), New(s, nil)
				},
				Advance: func(d time.Duration) { now = now.Add(d).Truncate(time.Microsecond) },
			})
		})
	}
}

func acquire(value string, token node.Token) node.Request {
	return node.Request{Op: node.OpAcquire, Name: "job", Value: value, TTL: time.Minute, Fencing: node.Fencing{Token: token, Window: time.Hour, Retention: time.Hour}}
}

// TestClientThatFreezesBetweenReadAndWriteBlocksNobody has a client read a row,
// freeze while another takes the lock, and go on: it must not be granted.
func TestClientThatFreezesBetweenReadAndWriteBlocksNobody(t *testing.T) {
	s := newTable(time.Now)
	n := New(s, nil)
	token := node.Token(time.Now().UnixMicro())
	s.next(func() { grant(t, n, acquire("other", token+1)) })
	if r, err := n.Do(t.Context(), acquire("frozen", token)); err != nil || r.Status != node.Held || r.Value != "other" {
		t.Errorf("the frozen one: %v by %q, %v", r.Status, r.Value, err)
	}
}

// TestRowThatWasSweptAndWrittenAnewIsAnother has the row of a frozen client be
// swept and written anew: its version must not fit again.
func TestRowThatWasSweptAndWrittenAnewIsAnother(t *testing.T) {
	now := time.Now()
	s := newTable(func() time.Time { return now })
	n := New(s, nil)
	token := node.Token(now.UnixMicro())
	grant(t, n, acquire("first", token))
	now = now.Add(time.Second)
	s.next(func() {
		now = now.Add(24 * time.Hour)
		if sweepAll(t, n); len(s.rows) != 0 {
			t.Fatalf("%d rows are left", len(s.rows))
		}
		grant(t, n, acquire("other", node.Token(now.UnixMicro())))
	})
	req := acquire("first", token)
	req.Op = node.OpExtend
	if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Held || r.Value != "other" {
		t.Errorf("the extension of the frozen one: %v by %q, %v", r.Status, r.Value, err)
	}
}

// TestErrorsSayWhetherTheRequestHadAnEffect has statements fail: a read had none,
// a write may have had one.
func TestErrorsSayWhetherTheRequestHadAnEffect(t *testing.T) {
	down := errors.New("down")
	for _, onSwap := range []bool{false, true} {
		s := newTable(time.Now)
		s.broken = func(swap bool) error {
			if swap == onSwap {
				return down
			}
			return nil
		}
		_, err := New(s, nil).Do(t.Context(), acquire("one", 0))
		if !errors.Is(err, down) || errors.Is(err, node.ErrUnsent) == onSwap {
			t.Errorf("failed at the swap %v: %v", onSwap, err)
		}
	}
	s := newTable(time.Now)
	s.refuse = func() bool { return true }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := New(s, nil).Do(ctx, acquire("one", 0)); !errors.Is(err, node.ErrContended) || !errors.Is(err, node.ErrUnsent) {
		t.Errorf("others wrote at each try: %v", err)
	}
}

// TestRefusalsWriteNothing counts writes: a request that changes nothing is one
// read.
func TestRefusalsWriteNothing(t *testing.T) {
	s := newTable(time.Now)
	n := New(s, nil)
	token := node.Token(time.Now().UnixMicro())
	for _, req := range []node.Request{acquire("one", token), acquire("two", token+1), {Op: node.OpInspect, Name: "job"}} {
		_, err := n.Do(t.Context(), req)
		must(t, err)
	}
	if s.swaps != 1 {
		t.Errorf("%d writes for one grant and two that change nothing", s.swaps)
	}
}
