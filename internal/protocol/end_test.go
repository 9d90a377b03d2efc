package protocol_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// TestUndoDoesNotOvertakeTheRelease has a waiter win while replies from two
// nodes, which queued it before, are still on their way. They come while its
// release is in flight. The places have to be undone, but only after the
// release: an undo that a node executes first frees the lock, and the release
// would report it lost.
func TestUndoDoesNotOvertakeTheRelease(t *testing.T) {
	c := &crowd{}
	holder, one := c.join(0, false), c.join(0, false)
	holder.does(protocol.Event{Kind: protocol.Begin})
	for i := range 3 {
		holder.deliver(i)
	}
	c.now += time.Millisecond
	one.does(protocol.Event{Kind: protocol.Begin})
	late := []protocol.Event{one.execute(one.take(0))}
	one.deliver(1)
	one.deliver(2)
	c.pass() // one asks again
	one.deliver(0)
	late = append(late, one.execute(one.take(1)))
	one.deliver(2)
	for i, e := range late {
		if e.Node != i || e.Reply.Status != node.Held || e.Reply.Rank != 1 {
			t.Fatalf("reply %d is %+v: this test shows nothing", i, e.Reply)
		}
	}

	holder.does(protocol.Event{Kind: protocol.Release})
	for i := range 3 {
		holder.deliver(i)
	}
	for _, e := range one.wakes {
		one.does(e)
	}
	for i := range 3 {
		one.deliver(i)
	}
	if one.claim.State() != protocol.Held {
		t.Fatalf("after its turn the claim is %v", one.claim.State())
	}

	one.does(protocol.Event{Kind: protocol.Release})
	for _, e := range late {
		one.does(e)
	}
	if n := len(one.undos); n != 0 {
		t.Errorf("%d undos may overtake the release", n)
	}
	one.undo() // and so they do
	for i := range 3 {
		one.deliver(i)
	}
	if v := one.claim.Verdict(); v != protocol.IsFree {
		t.Errorf("the release reports %v, want %v", v, protocol.IsFree)
	}
	var undone protocol.Set
	for _, f := range one.undos {
		undone |= protocol.Of(f.Node)
	}
	if want := protocol.Of(0) | protocol.Of(1); undone != want {
		t.Errorf("after the release the nodes %b are undone, want %b", undone, want)
	}
}

// holdsWithoutTheThird returns a claim that two of three nodes have granted. Its
// request to the third is in flight.
func holdsWithoutTheThird(t *testing.T, c *crowd) *contender {
	t.Helper()
	one := c.join(0, false)
	one.does(protocol.Event{Kind: protocol.Begin})
	one.deliver(0)
	one.deliver(1)
	if one.claim.State() != protocol.Held {
		t.Fatalf("with two grants the claim is %v", one.claim.State())
	}
	return one
}

// wantNothing fails if a node holds or queues anybody.
func (c *crowd) wantNothing(t *testing.T, i int) {
	t.Helper()
	if l := c.nodes[i].Look(epoch.Add(c.now), "job"); l.Reply.Status != node.Absent || l.Waiting != 0 {
		t.Errorf("node %d: %v, %d waiting; want nothing left", i, l.Reply.Status, l.Waiting)
	}
}

// TestReleaseIsSentBehindARequestInFlight releases a lease before the third node
// has answered. The node executes in order, so that the release is the last
// request; a node that does not is sent one when it has answered.
func TestReleaseIsSentBehindARequestInFlight(t *testing.T) {
	for _, inOrder := range []protocol.Set{protocol.All(3), 0} {
		c := &crowd{inOrder: inOrder}
		one := holdsWithoutTheThird(t, c)
		one.does(protocol.Event{Kind: protocol.Release})
		var releases protocol.Set
		for _, f := range one.asked {
			if f.Request.Op == node.OpRelease {
				releases |= protocol.Of(f.Node)
			}
			if f.Request.NoRepair != 0 {
				t.Errorf("in order %b: the release to node %d has the node remember the value", inOrder, f.Node)
			}
		}
		if want := protocol.All(2) | inOrder; releases != want {
			t.Errorf("in order %b: the release goes to %b, want %b", inOrder, releases, want)
		}
		one.deliver(0)
		one.deliver(1)
		if one.claim.Verdict() != protocol.IsFree {
			t.Errorf("in order %b: two nodes have freed the lock, and the release is %v", inOrder, one.claim.Verdict())
		}
		for len(one.asked) > 0 {
			one.deliver(2)
		}
		if undone := len(one.undos) > 0; undone == (inOrder != 0) {
			t.Errorf("in order %b: undone %v", inOrder, undone)
		}
		one.undo()
		c.wantNothing(t, 2)
	}
}

// TestRequestThatWasSentAgainBehindTheReleaseIsUndone has the third node execute
// the release first, because the acquisition had to be sent again. Another client
// has the lock there by then, so that the acquisition joins the queue; or the
// token was ahead of the node's clock at first, so that it is granted.
func TestRequestThatWasSentAgainBehindTheReleaseIsUndone(t *testing.T) {
	for _, queued := range []bool{true, false} {
		c := &crowd{inOrder: protocol.All(3)}
		one := holdsWithoutTheThird(t, c)
		late := one.take(2)
		one.does(protocol.Event{Kind: protocol.Release})
		clock := c.now
		if !queued {
			c.now -= 11 * time.Second // of the node: the window is 10 s
		}
		one.deliver(2)
		c.now = clock
		other := c.join(0, false)
		if queued {
			c.now += time.Millisecond
			other.does(protocol.Event{Kind: protocol.Begin})
			other.deliver(2)
		}
		e := one.execute(late)
		if want := []node.Status{node.Granted, node.Held}; e.Reply.Status != want[e.Reply.Rank] || queued != (e.Reply.Rank == 1) {
			t.Fatalf("queued %v: the late request is %v, place %d: this test shows nothing", queued, e.Reply.Status, e.Reply.Rank)
		}
		e.Again = true
		one.does(e)
		one.deliver(0)
		one.deliver(1)
		one.undo()
		if queued {
			other.does(protocol.Event{Kind: protocol.Cancel})
			other.undo()
		}
		c.wantNothing(t, 2)
	}
}

// TestRequestThatComesAfterTheReleaseIsUndone has two proposals of a claim in
// flight to the third node when it is released, or one after a grant. The node's
// clock is behind, so that the token of the release is ahead of it and raises no
// fence. What is executed after the release is granted.
func TestRequestThatComesAfterTheReleaseIsUndone(t *testing.T) {
	for _, granted := range []bool{false, true} {
		c := &crowd{}
		behind := func(f func()) {
			c.now -= 6 * time.Second // the window is 10 s
			f()
			c.now += 6 * time.Second
		}
		for i := range 2 {
			c.nodes[i].Apply(epoch, node.Request{Op: node.OpRelease, Name: "job", Value: "x",
				Fencing: node.Fencing{Token: node.Token(epoch.Add(5 * time.Second).UnixMicro()), Window: 10 * time.Second, Retention: time.Hour}})
		}
		one := c.join(0, false)
		one.does(protocol.Event{Kind: protocol.Begin})
		var late protocol.Message
		if granted {
			behind(func() { one.deliver(2) })
		} else {
			late = one.take(2)
		}
		one.deliver(0)
		one.deliver(1) // the token is stale, and a higher one is proposed
		if granted {
			late = one.take(2)
		} else {
			behind(func() { one.deliver(2) }) // it is ahead
		}
		one.deliver(0)
		one.deliver(1)
		one.does(protocol.Event{Kind: protocol.Release})
		one.deliver(0)
		one.deliver(1)
		if len(one.asked) > 0 {
			behind(func() { one.deliver(2) })
		}
		e := one.execute(late)
		if e.Reply.Status != node.Granted || one.claim.Verdict() != protocol.IsFree {
			t.Fatalf("granted %v: the late request is %v, the release %v: this test shows nothing", granted, e.Reply.Status, one.claim.Verdict())
		}
		one.does(e)
		one.undo()
		c.wantNothing(t, 2)
	}
}

// TestReleaseOvertakesWhatWillNeverBeAnswered has the connection to a node break
// with a request in flight. The clock was ahead, and the token that wins is lower.
// The request is executed after the release.
func TestReleaseOvertakesWhatWillNeverBeAnswered(t *testing.T) {
	c := &crowd{}
	one := c.join(0, false)
	low := node.Token(epoch.UnixMicro())
	one.tokens = []node.Token{low + 4_000_000, low}
	one.does(protocol.Event{Kind: protocol.Begin})
	first := [3]protocol.Message{one.take(0), one.take(1), one.take(2)}
	late := first[2]
	for _, i := range []int{2, 1, 0} {
		fault := protocol.Unsent
		if i == late.Node {
			fault = protocol.Broken
		}
		one.does(protocol.Event{Kind: protocol.Answer, Node: i, Seq: first[i].Seq, Op: node.OpAcquire, Token: first[i].Request.Token, Fault: fault})
	}
	for range 2 { // it is acquired, and released
		for i := range 3 {
			one.deliver(i)
		}
		if one.claim.State() == protocol.Held {
			one.does(protocol.Event{Kind: protocol.Release})
		}
	}
	if one.claim.State() != protocol.Gone || late.Request.Token <= one.claim.Token() {
		t.Fatalf("the claim is %v, its token is %d, and the late one %d: this test shows nothing", one.claim.State(), one.claim.Token(), late.Request.Token)
	}
	one.execute(late)
	c.wantNothing(t, 2)
}

// TestReleaseForbidsTheRepairThatMayBeInFlight releases a lease whose repair, or a
// copy of it, is in flight to the third node. It arrives as late as a repair may be
// executed.
func TestReleaseForbidsTheRepairThatMayBeInFlight(t *testing.T) {
	release := protocol.Event{Kind: protocol.Release}
	for name, end := range map[string]func(c *crowd, one *contender, late protocol.Message) *contender{
		"by its holder, and what comes is a copy": func(_ *crowd, one *contender, late protocol.Message) *contender {
			one.does(one.execute(late))
			one.does(release)
			return one
		},
		"by the handle, in another process": func(c *crowd, one *contender, _ protocol.Message) *contender {
			other := c.elsewhere(one)
			other.does(release)
			return other
		},
		"by the handle, in a process for which the third node is suspect": func(c *crowd, one *contender, _ protocol.Message) *contender {
			other := c.elsewhere(one)
			other.suspects = protocol.Of(2)
			other.does(release)
			return other
		},
		"by another process that attached it": func(c *crowd, one *contender, _ protocol.Message) *contender {
			other := c.elsewhere(one)
			other.does(protocol.Event{Kind: protocol.Attach})
			other.deliver(0)
			other.deliver(1)
			other.take(2) // it would be repaired once more
			other.does(release)
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &crowd{}
			one := holdsWithoutTheThird(t, c)
			one.does(protocol.Event{Kind: protocol.Answer, Node: 2, Seq: one.take(2).Seq, Op: node.OpAcquire, Fault: protocol.Unsent})
			one.does(protocol.Event{Kind: protocol.Extend})
			for i := range 3 {
				one.deliver(i)
			}
			late := one.take(2)
			if late.Request.Op != node.OpRepair {
				t.Fatalf("a node that lacks the lease is sent %v, want a repair", late.Request.Op)
			}
			by := end(c, one, late)
			for len(by.asked) > 0 {
				by.deliver(by.asked[0].Node)
			}
			by.undo()
			c.now += by.claim.Config().Limit - time.Millisecond
			one.execute(late)
			c.wantNothing(t, 2)
		})
	}
}

// elsewhere returns a contender that has the handle of another's lease.
func (c *crowd) elsewhere(one *contender) *contender {
	other := c.join(0, false)
	other.claim = protocol.HeldElsewhere(*one.claim.Config(), one.claim.Value(), one.claim.Token())
	return other
}

// TestReleaseKeepsALateRequestOutOfTheQueue has a request come after the release of
// its claim, as late as a node would queue it: its token was almost a window ahead
// of the node's clock at the release, and is almost a window behind it now.
func TestReleaseKeepsALateRequestOutOfTheQueue(t *testing.T) {
	const almost = 9 * time.Second // the window is 10 s
	c := &crowd{}
	one := holdsWithoutTheThird(t, c)
	late := one.take(2)
	one.does(protocol.Event{Kind: protocol.Answer, Node: 2, Seq: late.Seq, Op: node.OpAcquire, Token: late.Request.Token, Fault: protocol.Broken})
	one.does(protocol.Event{Kind: protocol.Release})
	c.now = -almost // of the node
	one.deliver(2)
	c.now = almost
	other := c.join(0, false)
	other.does(protocol.Event{Kind: protocol.Begin})
	other.granted(t, 2)
	if e := one.execute(late); e.Reply.Status != node.Held || e.Reply.Rank != 0 {
		t.Errorf("the late request is %v, place %d; want it held by another, and no place", e.Reply.Status, e.Reply.Rank)
	}
}
