package rowtest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// Memory is a node that writes without a read before it, on a server whose clock
// can be set.
type Memory struct {
	Server *servertest.OwnDatabase
	Clock  *clockshim.Clock
	// Open opens the node.
	Open   func(t testing.TB, dsn string) *casnode.Node
	Driver string
	// Statements is a query for how many statements the server has executed.
	Statements string
}

// Run counts the statements, has writes come late, and sets the clock in between.
func (m Memory) Run(t *testing.T) {
	open := func(t testing.TB) *casnode.Node {
		n := m.Open(t, m.Server.DSN())
		t.Cleanup(func() { n.Close() })
		for _, op := range []node.Op{node.OpAcquire, node.OpRelease} {
			want(t, n, request(op, "before"), node.Granted)
		}
		return n
	}
	t.Run("one statement a request", func(t *testing.T) { m.count(t, open) })
	t.Run("a row counts from its write", func(t *testing.T) { countsFromItsWrite(t, open(t)) })
	t.Run("the clock is set in between", func(t *testing.T) { m.jump(t, open) })
}

// count counts statements. A node whose write came late reads first for a while, so
// on a busy machine another node is asked.
func (m Memory) count(t *testing.T, open func(testing.TB) *casnode.Node) {
	db, err := sql.Open(m.Driver, m.Server.DSN())
	check.Must(t, err)
	defer db.Close()
	executed := func() (statements int) {
		check.Must(t, db.QueryRow(m.Statements).Scan(&statements))
		return statements
	}
	const rounds, tries = 20, 30
	for range tries {
		n := open(t)
		before := executed()
		for range rounds {
			for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
				want(t, n, request(op, "one"), node.Granted)
			}
		}
		got := executed() - before
		t.Logf("%d requests took %d statements", 3*rounds, got)
		if got <= 3*rounds+rounds { // some sweep, and one counts
			return
		}
	}
	t.Errorf("with each of %d nodes it took more statements than %d", tries, 3*rounds+rounds)
}

// countsFromItsWrite extends a lock some time after its node has read the clock.
func countsFromItsWrite(t *testing.T, n *casnode.Node) {
	want(t, n, request(node.OpAcquire, "one"), node.Granted)
	for range 3 {
		time.Sleep(2 * time.Second)
		req := request(node.OpExtend, "one")
		sent := time.Now().Round(0).Truncate(time.Microsecond)
		want(t, n, req, node.Granted)
		answered := time.Now().Round(0)
		l, err := n.Look(t.Context(), req.Name)
		if err != nil || len(l.Holders) != 1 {
			t.Fatalf("%+v, %v", l, err)
		}
		until := l.Holders[0].Until
		if early := sent.Add(req.TTL).Sub(until); early > 0 {
			t.Errorf("the row expires %v before its holder believes so", early)
		}
		if late := until.Sub(answered.Add(req.TTL)); late > 0 {
			t.Errorf("the row expires %v later than its TTL", late)
		}
	}
	want(t, n, request(node.OpRelease, "one"), node.Granted)
}

// jump sets the clock between what the node remembers and its write: by so much
// that it must read, and by so little that it need not.
func (m Memory) jump(t *testing.T, open func(testing.TB) *casnode.Node) {
	n := open(t)
	for _, off := range []time.Duration{time.Hour, -time.Hour, 2 * time.Minute, time.Second, -time.Second, casnode.Span / 4} {
		want(t, n, request(node.OpAcquire, "one"), node.Granted)
		want(t, n, request(node.OpExtend, "one"), node.Granted)
		m.Clock.Set(off, 0)
		req := request(node.OpExtend, "one")
		sent := time.Now().Add(off).Round(0).Truncate(time.Microsecond)
		status := node.Granted
		if off > req.TTL { // it has expired, by the only clock that counts
			status = node.Absent
		}
		want(t, n, req, status)
		l, err := n.Look(t.Context(), req.Name)
		switch {
		case err != nil:
			t.Fatal(err)
		case status == node.Absent:
			if len(l.Holders) != 0 {
				t.Errorf("set by %v: %+v holds a lock that has expired", off, l.Holders)
			}
		case len(l.Holders) != 1 || l.Holders[0].Until.Before(sent.Add(req.TTL)):
			t.Errorf("set by %v: %+v, want one until %v", off, l.Holders, sent.Add(req.TTL))
		}
		m.Clock.Set(0, 0)
		req.Op, req.Token = node.OpBreak, l.Reply.Fence+1
		do(t, n, req)
	}
}
