package protocol_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
)

// stage is a few claims and three nodes, in time that a test controls. Requests
// are executed at once.
type stage struct {
	now     time.Duration
	nodes   [3]nodestate.Server
	actors  []*actor
	cut     protocol.Set // nodes that do not answer
	written strings.Builder
}

// actor is one claim, and what it reports.
type actor struct {
	*stage
	name  string
	claim protocol.Claim
	last  protocol.State // the last one that was written
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The stage is the view of its claims: clocks are correct, random values are 0.

func (s *stage) Now() protocol.Instant { return s.now }
func (s *stage) Time() time.Time       { return epoch.Add(s.now) }
func (s *stage) Offset() time.Duration { return 0 }
func (s *stage) ClockKnown() bool      { return true }
func (s *stage) NoClocks() bool        { return false }
func (s *stage) Token(floor node.Token) node.Token {
	return max(floor, node.Token(s.Time().UnixMicro()))
}
func (s *stage) Suspects() protocol.Set             { return 0 }
func (s *stage) MayProbe(int) bool                  { return true }
func (s *stage) Epoch(int) uint64                   { return 0 }
func (s *stage) InOrder() protocol.Set              { return 0 }
func (s *stage) InQuarantine(int) bool              { return false }
func (s *stage) Missed() uint32                     { return 0 }
func (s *stage) Random(time.Duration) time.Duration { return 0 }

func (s *stage) actor(name string) *actor {
	a := &actor{stage: s, name: name}
	a.claim = protocol.NewClaim(s, protocol.Config{
		Nodes: 3, TTL: 10 * time.Second, Window: 10 * time.Second, Limit: time.Second,
		Patience: 250 * time.Millisecond, RetryDelay: 200 * time.Millisecond, KeepAlive: true, MaxHold: time.Hour,
	}, protocol.NewValue([16]byte{}, name))
	s.actors = append(s.actors, a)
	return a
}

// does sends an event to an actor, and executes all that follows.
func (a *actor) does(what string, e protocol.Event) {
	before := a.claim.State()
	var ready protocol.Ready
	a.claim.Handle(a, &e, &ready)
	news := ""
	for _, what := range ready.News {
		switch what {
		case protocol.Won:
			news = fmt.Sprintf(": valid for %v", a.claim.Deadline()-a.now)
		case protocol.Extended:
			news = fmt.Sprintf(": extended, valid for %v", a.claim.Deadline()-a.now)
		case protocol.Ended:
			news = fmt.Sprintf(": %v", a.claim.Cause())
		case protocol.Freed:
			news = fmt.Sprintf(": %v", a.claim.Verdict())
		}
	}
	after := a.claim.State()
	// A waiter that asks again and continues to wait is not written.
	if again := after == protocol.Asking && a.last == protocol.Waiting; after != before && !again && after != a.last || news != "" {
		fmt.Fprintf(&a.written, "%8v  %s  %-24s %v%s\n", a.now.Round(time.Millisecond), a.name, what, after, news)
		a.last = after
	}
	for _, m := range ready.Send {
		a.send(m, true)
	}
	for _, m := range ready.Undo {
		a.send(m, false)
	}
}

// about completes a request.
func about(m protocol.Message) node.Request {
	m.Request.Name, m.Request.Retention = "job", time.Hour
	return m.Request
}

// send has a node execute a request, and the actor get the answer, if it awaits one.
func (a *actor) send(m protocol.Message, awaits bool) {
	if a.cut.Has(m.Node) {
		return // the time limit of the round is the answer
	}
	req := about(m)
	reply, wakes := a.nodes[m.Node].Apply(a.Time(), req)
	if awaits {
		a.does(fmt.Sprintf("%d: %v", m.Node+1, reply.Status), protocol.Event{
			Kind: protocol.Answer, Node: m.Node, Seq: m.Seq, Op: req.Op, Once: req.Once, Token: req.Token, Reply: reply,
		})
	}
	a.wake(m.Node, wakes)
}

// wake delivers notifications.
func (s *stage) wake(i int, wakes []node.Wake) {
	for _, w := range wakes {
		for _, a := range s.actors {
			if a.claim.Value() == w.Value {
				a.does(fmt.Sprintf("notified by %d", i+1), protocol.Event{Kind: protocol.Wake, Node: i, Wake: w})
			}
		}
	}
}

// sleep lets time pass, and fires timers, except those of actors that are
// paused.
func (s *stage) sleep(d time.Duration, paused ...*actor) {
	for end := s.now + d; s.now < end; {
		next := end
		for _, a := range s.actors {
			if at, ok := a.claim.Timer().Get(); ok && !slices.Contains(paused, a) {
				next = min(next, max(at, s.now))
			}
		}
		s.now = next
		for _, a := range s.actors {
			if a.claim.Timer().Reached(s.now) && !slices.Contains(paused, a) {
				a.does("timer", protocol.Event{Kind: protocol.Timer})
			}
		}
	}
}

// TestStoryOfAPausedHolder is the example of the package comment, step by step.
func TestStoryOfAPausedHolder(t *testing.T) {
	s := &stage{}
	a := s.actor("A")
	a.does("begins", protocol.Event{Kind: protocol.Begin})
	s.sleep(time.Second)
	b := s.actor("B")
	b.does("begins", protocol.Event{Kind: protocol.Begin})
	s.sleep(time.Second)
	c := s.actor("C")
	c.does("begins", protocol.Event{Kind: protocol.Begin})
	s.sleep(20*time.Second, a)
	a.does("wakes up: timer", protocol.Event{Kind: protocol.Timer})
	b.does("releases", protocol.Event{Kind: protocol.Release})
	s.sleep(100 * time.Millisecond)
	if a.claim.State() != protocol.Gone || b.claim.State() != protocol.Gone || c.claim.State() != protocol.Held {
		t.Errorf("A is %v, B is %v, C is %v; want gone, gone, held", a.claim.State(), b.claim.State(), c.claim.State())
	}
	if !(a.claim.Token() < b.claim.Token() && b.claim.Token() < c.claim.Token()) {
		t.Errorf("tokens are %d, %d, %d", a.claim.Token(), b.claim.Token(), c.claim.Token())
	}
	s.golden(t, "testdata/paused.txt")
}

// TestStoryOfANodeThatIsCutOff acquires a lease without one node, which is
// repaired when it is back.
func TestStoryOfANodeThatIsCutOff(t *testing.T) {
	s := &stage{cut: protocol.Of(2)}
	a := s.actor("A")
	a.does("begins", protocol.Event{Kind: protocol.Begin})
	s.sleep(time.Second)
	s.cut = 0
	s.sleep(5 * time.Second)
	if l := s.nodes[2].Look(s.Time(), "job"); l.Reply.Status != node.Held {
		t.Errorf("node 3 is %v, want it held after a repair", l.Reply.Status)
	}
	s.cut = protocol.Of(0) | protocol.Of(1)
	s.sleep(20 * time.Second)
	if a.claim.Cause() != protocol.Expired {
		t.Errorf("with two of three cut off the lease ended: %v, want %v", a.claim.Cause(), protocol.Expired)
	}
	s.golden(t, "testdata/cut.txt")
}

// golden compares what was written with a file. REDLATCH_GOLDEN=1 writes it.
func (s *stage) golden(t *testing.T, file string) {
	t.Helper()
	if os.Getenv("REDLATCH_GOLDEN") != "" {
		check.Must(t, os.WriteFile(file, []byte(s.written.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	check.Must(t, err)
	if got := s.written.String(); got != string(want) {
		t.Errorf("the story is another one (REDLATCH_GOLDEN=1 writes it):\n%s\nwant\n%s", got, want)
	}
}

// TestWaiterDoesNotKeepANodeThatItYielded has a caller wait for a lease that
// misses a node. The caller takes the node, and yields it to the holder. Then
// the node notifies it: it does not keep the node from the holder.
func TestWaiterDoesNotKeepANodeThatItYielded(t *testing.T) {
	s := &stage{cut: protocol.Of(2)}
	a := s.actor("A")
	a.does("begins", protocol.Event{Kind: protocol.Begin})
	s.cut = 0
	b := s.actor("B")
	b.does("begins", protocol.Event{Kind: protocol.Begin})
	s.sleep(10 * time.Millisecond)
	if l := s.nodes[2].Look(s.Time(), "job"); l.Reply.Status == node.Held {
		t.Fatalf("node 3 is held by %q, want it yielded", l.Reply.Value)
	}
	wake := node.Wake{Kind: node.WakeTurn, Value: b.claim.Value()}
	b.does("notified by 3", protocol.Event{Kind: protocol.Wake, Node: 2, Wake: wake})
	s.sleep(2 * time.Second)
	if l := s.nodes[2].Look(s.Time(), "job"); l.Reply.Value == b.claim.Value() {
		t.Errorf("B keeps node 3, and A has a quorum without it")
	}
	s.sleep(2 * time.Second)
	if l := s.nodes[2].Look(s.Time(), "job"); l.Reply.Value != a.claim.Value() {
		t.Errorf("node 3 is %v by %q, want it repaired", l.Reply.Status, l.Reply.Value)
	}
}
