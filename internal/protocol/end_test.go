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
	holder, one := c.join(0, 0), c.join(0, 0)
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
