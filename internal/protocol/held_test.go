package protocol_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// TestNothingIsRepairedAfterTheDeadline has the answer that a node lacks the lease,
// or has another slot of it, come when the lease is over, and the claim does not
// know yet.
func TestNothingIsRepairedAfterTheDeadline(t *testing.T) {
	for name, history := range map[string]func(c *crowd) (one *contender, late protocol.Message){
		"a node lacks it": func(c *crowd) (*contender, protocol.Message) {
			one := holdsWithoutTheThird(t, c)
			one.does(protocol.Event{Kind: protocol.Answer, Node: 2, Seq: one.take(2).Seq, Op: node.OpAcquire, Fault: protocol.Unsent})
			one.does(protocol.Event{Kind: protocol.Extend})
			one.deliver(0)
			one.deliver(1)
			return one, one.take(2)
		},
		"a node gave another slot": func(c *crowd) (*contender, protocol.Message) {
			other, one := c.join(2, true), c.join(2, true)
			other.does(protocol.Event{Kind: protocol.Begin})
			other.deliver(2)
			c.now += time.Millisecond
			one.does(protocol.Event{Kind: protocol.Begin})
			one.deliver(0)
			one.deliver(1)
			return one, one.take(2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, over := range []bool{false, true} {
				c := &crowd{}
				one, late := history(c)
				answer := one.execute(late)
				if over {
					c.now = one.claim.Deadline()
				}
				one.does(answer)
				if repairs := len(one.asked); one.claim.State() != protocol.Held || repairs == 1 == over {
					t.Errorf("the claim is %v, over %v: %d repairs", one.claim.State(), over, repairs)
				}
			}
		})
	}
}
