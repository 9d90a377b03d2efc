package protocol_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// TestGrantFromBeforeThePartialGrantsDoesNotCount has a node grant the round, and
// its answer come when the claim requests the lock from another node, with a
// higher token. That grant ends earlier than one of the higher token: counted
// together, they would be a lease that outlives one of its keys.
func TestGrantFromBeforeThePartialGrantsDoesNotCount(t *testing.T) {
	// Each leaves the claim with an old grant of node 0, and a request to node 1.
	for name, history := range map[string]func(t *testing.T, c *crowd, one *contender){
		"the claim is notified": func(t *testing.T, c *crowd, one *contender) {
			holder := c.join(0, false)
			holder.does(protocol.Event{Kind: protocol.Begin})
			holder.deliver(1)
			holder.deliver(2)
			one.does(protocol.Event{Kind: protocol.Begin})
			late := one.granted(t, 0)
			one.deliver(1)
			one.deliver(2)
			c.now += 458 * time.Millisecond
			holder.does(protocol.Event{Kind: protocol.Release})
			holder.deliver(1)
			holder.deliver(2)
			one.does(one.wakes[0])
			one.does(late)
		},
		"those before it are gone when it yields": func(t *testing.T, c *crowd, one *contender) {
			other, before := c.join(0, false), c.join(0, false)
			other.does(protocol.Event{Kind: protocol.Begin})
			other.deliver(2)
			before.does(protocol.Event{Kind: protocol.Begin})
			c.now += time.Millisecond
			config := *one.claim.Config()
			config.RetryDelay = 10 * time.Second // it waits for the answer to its yield
			one.claim = protocol.NewClaim(one, config, one.value())
			one.does(protocol.Event{Kind: protocol.Begin})
			one.deliver(1)
			before.deliver(1)
			one.deliver(2)
			late := one.granted(t, 0)
			c.now += 250 * time.Millisecond
			one.does(protocol.Event{Kind: protocol.Timer})
			one.does(late)
			c.now += 900 * time.Millisecond // its place lapses
			one.deliver(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &crowd{}
			one := c.join(0, false)
			history(t, c, one)
			if one.claim.State() != protocol.Waiting || len(one.asked) != 1 || one.asked[0].Node != 1 {
				t.Fatalf("the claim is %v, and has %d requests in flight: this test shows nothing", one.claim.State(), len(one.asked))
			}
			one.deliver(1)
			c.now = 10*time.Second + time.Millisecond // the key on node 0 has expired
			next := c.join(0, false)
			next.does(protocol.Event{Kind: protocol.Begin})
			next.deliver(0)
			next.deliver(2)
			if next.claim.State() != protocol.Held {
				t.Fatalf("the next claim is %v: this test shows nothing", next.claim.State())
			}
			if _, err := c.held(1); err != nil {
				t.Errorf("%v, for %v", err, one.claim.Deadline()-c.now)
			}
		})
	}
}

// granted has a node execute the first request in flight to it, and returns its
// answer, which is a grant.
func (c *contender) granted(t *testing.T, i int) protocol.Event {
	t.Helper()
	e := c.execute(c.take(i))
	if e.Reply.Status != node.Granted {
		t.Fatalf("node %d answers %v, want a grant", i, e.Reply.Status)
	}
	return e
}

// TestNodeThatWasTakenBeforeTheYieldDoesNotCount has a claim yield a minority. The
// lock is broken there, and another client's, before the yield comes.
func TestNodeThatWasTakenBeforeTheYieldDoesNotCount(t *testing.T) {
	c := &crowd{}
	first, second, one := c.join(0, false), c.join(0, false), c.join(0, false)
	for i, m := range []*contender{first, second, one} { // each has one node
		m.does(protocol.Event{Kind: protocol.Begin})
		m.deliver(i)
		c.now += time.Millisecond
	}
	one.deliver(0)
	one.deliver(1)
	c.nodes[2].Apply(one.Time(), node.Request{Op: node.OpBreak, Name: "job"})
	c.nodes[2].Apply(one.Time(), node.Request{Op: node.OpAcquire, Name: "job", Value: "another", TTL: time.Minute})
	one.deliver(2)
	first.does(protocol.Event{Kind: protocol.Cancel})
	first.undo()
	for _, e := range one.wakes {
		one.does(e)
	}
	one.does(one.granted(t, 0))
	if one.claim.State() == protocol.Held {
		t.Error("the claim is held by one node of three, and another client's")
	}
}
