package runner

import (
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// tokenSource keeps the last token that a client has sent.
type tokenSource struct {
	clock Clock
	last  atomic.Uint64
}

// next returns the token to propose next: at least floor. offset is how far the
// nodes' clocks are ahead of ours.
func (s *tokenSource) next(offset time.Duration, floor node.Token) node.Token {
	return protocol.NextToken(node.Token(s.last.Load()), floor, s.clock.Now().Add(offset))
}

// sent records that a token was sent.
func (s *tokenSource) sent(t node.Token) { s.last.Store(uint64(t)) }
