package nodestate

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

func request(op node.Op, name, value string) node.Request {
	return node.Request{
		Op: op, Name: name, Value: value,
		TTL: time.Minute, Fencing: node.Fencing{Window: 10 * time.Second, Retention: time.Hour},
	}
}

func TestNamesUsedOnceDoNotFillTheMemory(t *testing.T) {
	now := time.Now()
	var s Server
	const names, alive = 10_000, 60
	for i := range names {
		req := request(node.OpAcquire, fmt.Sprint("name ", i), "one")
		req.Token = node.Token(now.UnixMicro())
		req.TTL, req.Retention = alive*time.Second, alive*time.Second
		s.Apply(now, req)
		req.Value, req.Wait = "two", true
		s.Apply(now, req)
		now = now.Add(time.Second)
	}
	if most := 3*alive + leastSweep; len(s.names) > most {
		t.Errorf("%d names are kept of which %d are alive, want at most %d", len(s.names), alive, most)
	}
}

func TestALockWithoutATokenLeavesNothingBehind(t *testing.T) {
	var s Server
	now := time.Now()
	s.Apply(now, request(node.OpAcquire, "name", "one"))
	s.Apply(now, request(node.OpRelease, "name", "one"))
	s.Apply(now, request(node.OpInspect, "another", ""))
	if len(s.names) != 0 {
		t.Errorf("%d names are kept", len(s.names))
	}
}

// TestACloneSharesNothing copies a name that is waited for and whose waiters
// were called, and changes the original. The copy must not change.
func TestACloneSharesNothing(t *testing.T) {
	now := time.Now()
	s := Server{ID: "1"}
	ask := func(op node.Op, value string, ticket int64) {
		req := request(op, "name", value)
		req.Token, req.Wait, req.Ticket = node.Token(now.UnixMicro()), op == node.OpAcquire, ticket
		s.Apply(now, req)
	}
	ask(node.OpAcquire, "one", 1)
	for i := range int64(5) {
		ask(node.OpAcquire, fmt.Sprint("waiter ", i), 10+i)
	}
	now = now.Add(time.Second)
	ask(node.OpRelease, "one", 0) // the head's place has lapsed: the others are called
	before := s.Clone()
	again := before.Clone()
	if !reflect.DeepEqual(before, s) {
		t.Fatalf("the copy is %+v, want %+v", before, s)
	}
	if len(s.names["name"].Queue.Called) == 0 {
		t.Fatal("nobody was called: this test shows less than it should")
	}
	ask(node.OpAcquire, "waiter 3", 13)
	ask(node.OpAcquire, "waiter 1", 11)
	ask(node.OpAcquire, "another", 2)
	s.Mark(now, node.MarkRequest{Mark: node.MarkWrite, Guard: &node.Guard{Membership: "list", Quarantine: time.Second}})
	if reflect.DeepEqual(before, s) {
		t.Fatal("nothing has changed: this test shows nothing")
	}
	if !reflect.DeepEqual(before, again) {
		t.Errorf("the copy has become %+v, want %+v", before, again)
	}
}

// line is a server on which values ask for one name. Those that wait came in
// the order in which they first ask.
type line struct {
	t       *testing.T
	s       Server
	now     time.Time
	tickets map[string]int64
	turns   []string // who was notified of its turn by the last request
}

func newLine(t *testing.T) *line { return &line{t: t, now: time.Now(), tickets: map[string]int64{}} }

var writer, reader = node.Share{}, node.Share{Mode: node.Shared}

func passes(*node.Request)    {}
func waits(req *node.Request) { req.Wait = true }

// late has a waiter ask with a token that the node refuses.
func late(req *node.Request) { req.Wait, req.Token = true, 1 }

// expect executes a request and checks the status.
func (l *line) expect(want node.Status, op node.Op, value string, share node.Share, change func(*node.Request)) node.Reply {
	l.t.Helper()
	req := request(op, "name", value)
	req.Share = share
	if change(&req); req.Wait {
		if l.tickets[value] == 0 {
			l.tickets[value] = int64(len(l.tickets)) + 1
		}
		req.Ticket = l.tickets[value]
	}
	check.Must(l.t, Check(req))
	reply, wakes := l.s.Apply(l.now, req)
	l.turns = nil
	for _, w := range wakes {
		if w.Kind == node.WakeTurn {
			l.turns = append(l.turns, w.Value)
		}
	}
	if reply.Status != want {
		l.t.Fatalf("%v by %q: answered %q, want %q", op, value, reply.Status, want)
	}
	return reply
}

// expectTurns checks who was notified of its turn by the last request.
func (l *line) expectTurns(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.turns, want) {
		l.t.Fatalf("it was the turn of %q, want %q", l.turns, want)
	}
}

// TestALookAtTheQueueHasAnEnd has many readers wait for a free name. A reader
// behind more of them than there can be slots has to wait until they have
// asked, though all of them would fit.
func TestALookAtTheQueueHasAnEnd(t *testing.T) {
	for _, c := range []struct {
		what   string
		before int // readers in the queue before the one that asks
		change func(*node.Request)
		want   node.Status
	}{
		{"a waiter behind 3", 3, waits, node.Granted},
		{"a waiter behind 64", node.MaxSlots, waits, node.Granted},
		{"a waiter behind 65", node.MaxSlots + 1, waits, node.Reserved},
		{"a passer-by behind 64", node.MaxSlots, passes, node.Granted},
		{"a passer-by behind 65", node.MaxSlots + 1, passes, node.Reserved},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLine(t)
			l.expect(node.Granted, node.OpAcquire, "holder", writer, passes)
			for i := range c.before {
				l.expect(node.Held, node.OpAcquire, fmt.Sprint("reader ", i), reader, waits)
			}
			l.expect(node.Held, node.OpAcquire, "asker", reader, c.change)
			l.expect(node.Granted, node.OpRelease, "holder", writer, passes)
			l.expect(c.want, node.OpAcquire, "asker", reader, c.change)
			if c.want != node.Granted {
				l.expect(node.Granted, node.OpAcquire, "reader 0", reader, waits)
				l.expect(node.Granted, node.OpAcquire, "asker", reader, c.change)
			}
		})
	}
}

// TestANameHasAHighestNumberOfReaders fills a name with readers. One of them may ask
// again, and one more has to wait.
func TestANameHasAHighestNumberOfReaders(t *testing.T) {
	l := newLine(t)
	l.expect(node.Granted, node.OpAcquire, "reader 0", reader, passes)
	e := l.s.Stored("name")
	for i := 1; i < node.MaxHolders; i++ {
		h := e.Holders[0]
		h.Value, h.Token = fmt.Sprint("reader ", i), h.Token+node.Token(i)
		e.Holders = append(e.Holders, h)
	}
	for _, op := range []node.Op{node.OpAcquire, node.OpRepair, node.OpExtend} {
		l.expect(node.Granted, op, "reader 5", reader, passes)
	}
	l.expect(node.Held, node.OpAcquire, "next", reader, passes)
	l.expect(node.Held, node.OpRepair, "next", reader, passes)
	for i, value := range []string{"next", "after"} {
		if reply := l.expect(node.Held, node.OpAcquire, value, reader, waits); reply.Rank != i+1 || reply.Holders != node.MaxHolders {
			t.Errorf("%s: the rank is %d, beside %d holders", value, reply.Rank, reply.Holders)
		}
	}
	l.expect(node.Granted, node.OpRelease, "reader 5", reader, passes)
	l.expectTurns("next")
	l.expect(node.Reserved, node.OpAcquire, "after", reader, waits)
	l.expect(node.Granted, node.OpAcquire, "next", reader, waits)
	l.expect(node.Held, node.OpAcquire, "after", reader, waits)
}

// TestASecondWaiterIsNotifiedOnce is about the second in the queue, if there is
// room for it beside the head. Each case begins when "one" and "two" have been
// notified, with "three" behind them. The scripts of store/redis do the same, and a test
// compares them in random requests.
func TestASecondWaiterIsNotifiedOnce(t *testing.T) {
	const timePasses node.Op = 0 // so long that the head lapses
	type step struct {
		op     node.Op
		value  string
		change func(*node.Request)
		want   node.Status
		turns  []string
	}
	two, three := []string{"two"}, []string{"three"}
	for _, c := range []struct {
		what  string
		steps []step
	}{
		{"it becomes the head by a grant", []step{
			{node.OpAcquire, "one", waits, node.Granted, three},
			{node.OpAcquire, "two", waits, node.Granted, nil},
		}},
		{"it leaves", []step{
			{node.OpRelease, "two", passes, node.Absent, three},
			{node.OpRelease, "two", passes, node.Absent, nil},
		}},

		{"another takes the name before both ask", []step{
			{node.OpAcquire, "early", waits, node.Granted, nil},
			{node.OpRelease, "early", passes, node.Granted, []string{"one", "two"}},
			{node.OpRelease, "two", passes, node.Absent, three},
		}}, {"another takes the name when it is the only one left", []step{
			{node.OpRelease, "three", passes, node.Absent, nil},
			{node.OpRelease, "one", passes, node.Absent, nil},
			{node.OpAcquire, "early", waits, node.Granted, nil},
			{node.OpRelease, "early", passes, node.Granted, two},
		}}, {"it asks, is refused, and remains second", []step{
			{node.OpAcquire, "two", late, node.Behind, nil},
			{node.OpRelease, "stranger", passes, node.Absent, two},
			{node.OpRelease, "stranger", passes, node.Absent, nil},
			{node.OpRelease, "one", passes, node.Absent, three},
		}},
		{"the head does not ask, and it is called", []step{
			{op: timePasses},
			// "two" becomes the head. It has been notified of its turn.
			{node.OpRelease, "stranger", passes, node.Absent, three},
			{node.OpAcquire, "two", waits, node.Granted, nil},
		}},
		{"it asks after the head's time, alone, and is refused", []step{
			{node.OpRelease, "three", passes, node.Absent, nil},
			{op: timePasses},
			{node.OpAcquire, "two", late, node.Behind, nil},
			{node.OpRelease, "stranger", passes, node.Absent, two},
		}},
	} {
		for what, share := range map[string]node.Share{"readers": reader, "slots": {Mode: node.Slotted, Slots: 5}} {
			t.Run(c.what+", "+what, func(t *testing.T) {
				l := newLine(t)
				l.tickets["early"] = -1 // it came before all others, and has lost its place
				l.expect(node.Granted, node.OpAcquire, "holder", writer, passes)
				for _, value := range []string{"one", "two", "three"} {
					l.expect(node.Held, node.OpAcquire, value, share, waits)
					l.expectTurns()
				}
				l.expect(node.Granted, node.OpRelease, "holder", writer, passes)
				l.expectTurns("one", "two")
				for _, s := range c.steps {
					if s.op == timePasses {
						l.now = l.now.Add(node.TurnLease)
						continue
					}
					asked := share
					if s.value == "early" {
						asked = writer
					}
					l.expect(s.want, s.op, s.value, asked, s.change)
					l.expectTurns(s.turns...)
				}
			})
		}
	}
}
