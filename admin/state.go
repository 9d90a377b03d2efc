package admin

import (
	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
)

// State is what is known about a lock, in one word.
type State string

// The states of a lock.
const (
	// StateHeld: a quorum of nodes names the same holder.
	StateHeld State = "held"
	// StateUnknown: too few nodes answer to say.
	StateUnknown State = "unknown"
	// StateSplit: some nodes name a holder, but no quorum names the same.
	StateSplit State = "split"
	// StateWaited: nobody holds it, and somebody waits for it.
	StateWaited State = "waited"
	// StateFree: nobody holds it, and nobody waits for it.
	StateFree State = "free"
)

// State returns the lock's state. With nodes that do not answer, a holder may
// have a majority that is not seen: then it is unknown.
func (s *LockState) State() State {
	silent := len(s.Nodes) - s.Answered()
	switch {
	case s.Held:
		return StateHeld
	case s.Answered() <= len(s.Nodes)/2, s.Naming()+silent > len(s.Nodes)/2:
		return StateUnknown
	case len(s.Holders) > 0:
		return StateSplit
	case s.Waiting > 0:
		return StateWaited
	}
	return StateFree
}

// Answered returns how many nodes answered for the lock.
func (s *LockState) Answered() int {
	n := 0
	for i := range s.Nodes {
		if s.Nodes[i].Err == nil {
			n++
		}
	}
	return n
}

// Naming returns how many nodes name the first holder.
func (s *LockState) Naming() int {
	if len(s.Holders) == 0 {
		return 0
	}
	return s.Holders[0].Nodes
}

// Seen returns the highest token of the lock, for BreakOptions.Seen. If no node
// remembers one, it is the time at which they were asked, by the median of their
// clocks: tokens follow these clocks.
func (s *LockState) Seen() redlatch.Token {
	if s.Fence != 0 {
		return s.Fence
	}
	var clocks []int64
	for _, n := range s.Nodes {
		if n.Err == nil {
			clocks = append(clocks, n.Reply.Now.UnixMicro())
		}
	}
	return redlatch.Token(max(protocol.Median(clocks), 1))
}
