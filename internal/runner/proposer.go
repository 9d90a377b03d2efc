package runner

import (
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// proposer keeps the last token that a client proposed.
type proposer struct {
	clock Clock
	last  atomic.Uint64
}

// propose returns a token that is at least floor. offset is how far the nodes'
// clocks are ahead of ours.
func (p *proposer) propose(offset time.Duration, floor node.Token) node.Token {
	now := p.clock.Now().Add(offset)
	for {
		last := p.last.Load()
		next := protocol.NextToken(node.Token(last), now)
		if p.last.CompareAndSwap(last, uint64(next)) {
			return min(max(next, floor), node.MaxToken)
		}
	}
}
