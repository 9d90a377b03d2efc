package runner

import (
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// view is the client as its claims see it at one moment.
type view struct {
	c       *Cluster
	now     protocol.Instant
	inOrder protocol.Set
}

func (v *view) Now() protocol.Instant { return v.now }
func (v *view) Time() time.Time       { return v.c.clock.Now() }
func (v *view) Offset() time.Duration { return v.c.clockOffset() }
func (v *view) ClockKnown() bool      { return v.c.clockKnown() }
func (v *view) NoClocks() bool        { return v.c.noClocks() }
func (v *view) Epoch(i int) uint64    { return v.c.members[i].epoch.Load() }
func (v *view) Missed() uint32        { return v.c.inbox.missed.Load() }
func (v *view) MayProbe(i int) bool   { return v.c.members[i].mayProbe(v.now) }

func (v *view) Token(floor node.Token) node.Token {
	return v.c.tokens.next(v.c.clockOffset(), floor)
}

func (v *view) InOrder() protocol.Set  { return v.inOrder }
func (v *view) Suspects() protocol.Set { return v.c.suspects(v.now) }

func (v *view) InQuarantine(i int) bool { return v.c.members[i].inQuarantine(v.now) }

func (v *view) Random(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return v.c.rand.below(d)
}
