package world

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// member is what a client knows of a server.
type member struct {
	offset time.Duration // of its clock
	known  bool
	epoch  uint64
}

// learn records what an answer shows of a server.
func (c *Client) learn(i int, op node.Op, sent time.Time, r node.Reply) {
	m := &c.members[i]
	m.offset, m.known = protocol.Offset(m.offset, r.Now.Sub(c.time()), r.Now.Sub(sent)), true
	m.epoch = max(m.epoch, r.Epoch)
	if r.NeedsMark && op != node.OpMark {
		c.mark()
	}
}

// view is a client as its claims see it. It asks every server each time, also those that
// have stopped answering.
type view struct{ *Client }

func (v view) Now() protocol.Instant  { return v.uptime() }
func (v view) Time() time.Time        { return v.time() }
func (v view) Epoch(i int) uint64     { return v.members[i].epoch }
func (v view) Missed() uint32         { return v.missed }
func (v view) InOrder() protocol.Set  { return protocol.All(Servers) }
func (v view) NoClocks() bool         { return false }
func (v view) Suspects() protocol.Set { return 0 }
func (v view) MayProbe(int) bool      { return true }
func (v view) InQuarantine(int) bool  { return false }

func (v view) Offset() time.Duration {
	var seen []time.Duration
	for i := range v.members {
		if v.members[i].known {
			seen = append(seen, v.members[i].offset)
		}
	}
	return protocol.Median(seen)
}

func (v view) ClockKnown() bool {
	return slices.ContainsFunc(v.members[:], func(m member) bool { return m.known })
}

func (v view) Token(floor node.Token) node.Token {
	return protocol.NextToken(v.last, floor, v.time().Add(v.Offset()))
}

func (v view) Random(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(v.w.rand.Int64N(int64(d)))
}
