package protocol_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// crowd is some contenders for the slots of one name, on three servers. The test says
// which request is executed next. Clocks are correct; random values are the contender's.
type crowd struct {
	now     time.Duration
	nodes   [3]nodestate.Server
	members []*contender
	ahead   time.Duration // how far the clock of node 0 is ahead
	inOrder protocol.Set
}

// contender is one claim, with its requests in flight.
type contender struct {
	*crowd
	number   int
	claim    protocol.Claim
	values   int
	asked    []protocol.Message // in the order in which they were sent
	wakes    []protocol.Event
	undos    []protocol.Message
	tokens   []node.Token // what it proposes; the time if it has none left
	suspects protocol.Set
	won      int
}

func (c *contender) Now() protocol.Instant { return c.now }
func (c *contender) Time() time.Time       { return epoch.Add(c.now) }
func (c *contender) Offset() time.Duration { return 0 }
func (c *contender) ClockKnown() bool      { return true }
func (c *contender) NoClocks() bool        { return false }
func (c *contender) Token(floor node.Token) node.Token {
	if len(c.tokens) > 0 {
		t := c.tokens[0]
		c.tokens = c.tokens[1:]
		return t
	}
	return max(floor, node.Token(c.Time().UnixMicro()))
}
func (c *contender) Suspects() protocol.Set { return c.suspects }
func (c *contender) MayProbe(int) bool      { return false }
func (c *contender) Epoch(int) uint64       { return 0 }
func (c *contender) InOrder() protocol.Set  { return c.inOrder }
func (c *contender) InQuarantine(int) bool  { return false }
func (c *contender) Missed() uint32         { return 0 }
func (c *contender) Random(d time.Duration) time.Duration {
	return d * time.Duration(c.number) / 7
}

// join adds a contender for one of so many slots, or for the whole lock if they
// are 0.
func (c *crowd) join(slots uint8, once bool) *contender {
	m := &contender{crowd: c, number: len(c.members)}
	var share node.Share
	if slots > 0 {
		share = node.Share{Mode: node.Slotted, Slots: slots}
	}
	m.claim = protocol.NewClaim(m, protocol.Config{
		Nodes: 3, TTL: 10 * time.Second, Window: 10 * time.Second, Limit: time.Second, NoWait: once,
		Patience: 250 * time.Millisecond, RetryDelay: 200 * time.Millisecond, KeepAlive: true, MaxHold: time.Hour,
		Share: share,
	}, m.value())
	c.members = append(c.members, m)
	return m
}

func (c *contender) value() string {
	c.values++
	return protocol.NewValue([16]byte{byte(c.number), byte(c.values)}, "x")
}

// does hands an event to the claim, and puts what it asks for in flight.
func (c *contender) does(e protocol.Event) {
	var ready protocol.Ready
	c.claim.Handle(c, &e, &ready)
	if slices.Contains(ready.News, protocol.Won) {
		c.won++
	}
	c.asked = append(c.asked, ready.Send...)
	c.undos = append(c.undos, ready.Undo...)
	if ready.Replaced {
		c.claim = c.claim.Successor(c.value())
		c.does(protocol.Event{Kind: protocol.Resume})
	}
}

// execute has a node execute a request, and returns the answer.
func (c *contender) execute(f protocol.Message) protocol.Event {
	now := c.Time()
	if f.Node == 0 {
		now = now.Add(c.ahead)
	}
	req := about(f)
	reply, wakes := c.nodes[f.Node].Apply(now, req)
	for _, w := range wakes {
		for _, m := range c.members {
			if m.claim.Value() == w.Value {
				m.wakes = append(m.wakes, protocol.Event{Kind: protocol.Wake, Node: f.Node, Wake: w})
			}
		}
	}
	return protocol.Event{Kind: protocol.Answer, Node: f.Node, Seq: f.Seq, Op: req.Op, Once: req.Once, Token: req.Token, Reply: reply}
}

// take removes the first request in flight to a node.
func (c *contender) take(i int) protocol.Message {
	for n, f := range c.asked {
		if f.Node == i {
			c.asked = append(c.asked[:n:n], c.asked[n+1:]...)
			return f
		}
	}
	panic(fmt.Sprintf("contender %d has asked node %d nothing", c.number, i))
}

// deliver has a node execute the first request in flight to it, and answer. An
// answer to a former value changes nothing that is counted here.
func (c *contender) deliver(i int) {
	f := c.take(i)
	if e := c.execute(f); f.Request.Value == c.claim.Value() {
		c.does(e)
	}
}

// undo executes what is undone in the background.
func (c *contender) undo() {
	for _, f := range c.undos {
		c.execute(f)
	}
	c.undos = nil
}

// held returns the contenders that hold a slot, and an error if one is held
// twice, or too many are.
func (c *crowd) held(slots uint8) (n int, err error) {
	taken := map[uint8]int{}
	for _, m := range c.members {
		if !m.claim.State().IsHeld() || c.now >= m.claim.Deadline() {
			continue
		}
		slot := m.claim.Share().Slot
		if other, twice := taken[slot]; twice {
			return n, fmt.Errorf("contenders %d and %d both hold slot %d", other, m.number, slot)
		}
		taken[slot] = m.number
		n++
	}
	if n > int(slots) {
		return n, fmt.Errorf("%d contenders hold one of %d slots", n, slots)
	}
	return n, nil
}

// TestHigherProposalThatComesLateMovesNoSlot has a client whose clock was ahead
// propose a token that most nodes refuse. It wins with a lower one. The first
// proposal must not move what it has then.
func TestHigherProposalThatComesLateMovesNoSlot(t *testing.T) {
	c := &crowd{ahead: 5 * time.Second}
	holder, one, two := c.join(2, true), c.join(2, true), c.join(2, true)
	holder.does(protocol.Event{Kind: protocol.Begin})
	for i := range 3 {
		holder.deliver(i)
	}
	c.now += time.Millisecond
	high := node.Token(one.Time().Add(12 * time.Second).UnixMicro()) // within the window of node 0 alone
	one.tokens = []node.Token{high, node.Token(one.Time().UnixMicro())}
	one.does(protocol.Event{Kind: protocol.Begin})
	late := one.take(0)
	one.deliver(1)
	one.deliver(2)
	if one.claim.State() != protocol.Asking || late.Request.Token != high {
		t.Fatalf("the claim is %v after its token was refused, and has proposed %d", one.claim.State(), late.Request.Token)
	}
	one.deliver(0)
	one.deliver(1)
	lost := one.take(2)
	if one.claim.State() != protocol.Held || one.claim.Share().Slot != 1 {
		t.Fatalf("the claim is %v, and has the %v", one.claim.State(), one.claim.Share())
	}
	if lost.Request.Token >= high {
		t.Fatal("the token has not gone back: this test shows nothing")
	}
	holder.does(protocol.Event{Kind: protocol.Release})
	for i := range 3 {
		holder.deliver(i)
	}
	one.execute(late)
	c.now += time.Millisecond
	two.tokens = []node.Token{high + 1}
	two.claim = protocol.NewClaim(two, protocol.Config{
		Nodes: 3, TTL: 10 * time.Second, Window: 20 * time.Second, Limit: time.Second, NoWait: true,
		Patience: 250 * time.Millisecond, RetryDelay: 200 * time.Millisecond, MaxHold: time.Hour,
		Share: node.Share{Mode: node.Slotted, Slots: 2, Slot: 1},
	}, two.value())
	two.does(protocol.Event{Kind: protocol.Begin})
	two.deliver(0)
	two.deliver(2)
	if _, err := c.held(2); err != nil {
		t.Error(err)
	}
}

// permutations returns all orders of n things.
func permutations(n int) (all [][]int) {
	var grow func(order []int, used int)
	grow = func(order []int, used int) {
		if len(order) == n {
			all = append(all, append([]int(nil), order...))
			return
		}
		for i := range n {
			if used>>i&1 == 0 {
				grow(append(order, i), used|1<<i)
			}
		}
	}
	grow(nil, 0)
	return all
}

// settle delivers what is in flight, one request of each contender in turn, until
// nothing is.
func (c *crowd) settle(slots uint8) error {
	for busy := true; busy; {
		busy = false
		for _, m := range c.members {
			switch {
			case len(m.asked) > 0:
				m.deliver(m.asked[0].Node)
			case len(m.undos) > 0:
				m.undo()
			case len(m.wakes) > 0:
				e := m.wakes[0]
				m.wakes = m.wakes[1:]
				m.does(e)
			default:
				continue
			}
			busy = true
			if _, err := c.held(slots); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass has time pass until the next timer.
func (c *crowd) pass() {
	next := c.now + time.Second
	for _, m := range c.members {
		if at, ok := m.claim.Timer().Get(); ok {
			next = min(next, max(at, c.now))
		}
	}
	c.now = next
	for _, m := range c.members {
		if m.claim.Timer().Reached(c.now) {
			m.does(protocol.Event{Kind: protocol.Timer})
		}
	}
}

// TestNoOrderOfArrivalGivesASlotTwice has the first requests of four contenders for two
// slots arrive at three servers in every order, the names of the servers aside. Then all
// that follows is delivered in turn.
func TestNoOrderOfArrivalGivesASlotTwice(t *testing.T) {
	const slots, contenders = 2, 4
	orders := permutations(contenders)
	for _, once := range []bool{true, false} {
		t.Run(fmt.Sprint("once ", once), func(t *testing.T) {
			var ended [contenders + 1]int // by how many won at any time
			histories := 0
			for i, first := range orders {
				for j, second := range orders[i:] {
					for _, third := range orders[i+j:] {
						arrival := [3][]int{first, second, third}
						won, err := arrive(arrival, slots, once)
						if err != nil {
							t.Fatalf("they arrive in the orders %v: %v", arrival, err)
						}
						ended[won]++
						histories++
					}
				}
			}
			t.Logf("orders in which so many won: %v", ended)
			if once && (ended[0] != 0 || ended[slots] == 0) || !once && ended[contenders] != histories {
				t.Error("nobody won at all, or beside another, or not all after one another: this shows less than it seems to")
			}
		})
	}
}

// arrive has the first requests arrive in these orders, and returns how many
// contenders won.
func arrive(arrival [3][]int, slots uint8, once bool) (won int, err error) {
	c := &crowd{}
	for range arrival[0] {
		c.join(slots, once).does(protocol.Event{Kind: protocol.Begin})
		c.now += time.Microsecond
	}
	// The servers take turns.
	for place := range arrival[0] {
		for i := range c.nodes {
			c.members[arrival[i][place]].deliver(i)
			if _, err := c.held(slots); err != nil {
				return 0, err
			}
		}
	}
	err = c.settle(slots)
	for step := 0; step < 12 && err == nil && !once; step++ {
		// Now and then a holder leaves, so that others get its slot.
		if step%4 == 3 {
			for _, m := range c.members {
				if m.claim.State().IsHeld() {
					m.does(protocol.Event{Kind: protocol.Release})
					break
				}
			}
		}
		c.pass()
		err = c.settle(slots)
	}
	for _, m := range c.members {
		won += min(m.won, 1)
	}
	return won, err
}
