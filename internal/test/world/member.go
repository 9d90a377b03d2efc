package world

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// member is what a client knows of a server.
type member struct {
	failing, late  bool
	inFlight       int
	since          protocol.Instant // when it last answered, or was first asked
	probes         int
	probed         protocol.Instant
	offset         time.Duration // of its clock
	known          bool
	quarantined    bool
	quarantineEnds protocol.When // absent while it has to be marked
	epoch          uint64
}

// begin notes that the server is asked.
func (m *member) begin(now protocol.Instant) {
	if m.inFlight++; m.inFlight == 1 {
		m.since = now
	}
}

// learn records what an answer shows of a server.
func (c *Client) learn(i int, op node.Op, sent time.Time, r node.Reply, fault protocol.Fault) {
	m := &c.members[i]
	m.since = c.uptime()
	m.inFlight--
	m.failing, m.late = fault != protocol.NoFault, fault == protocol.TimedOut
	if fault != protocol.NoFault {
		return
	}
	m.offset, m.known = protocol.Offset(m.offset, r.Now.Sub(c.time()), r.Now.Sub(sent)), true
	m.epoch = max(m.epoch, r.Epoch)
	switch {
	case r.NeedsMark:
		m.quarantined, m.quarantineEnds = true, protocol.When{}
		if op != node.OpMark {
			c.mark()
		}
	case r.Status == node.Quarantined:
		m.quarantined, m.quarantineEnds = true, protocol.At(c.uptime()+r.Left)
	case r.Status == node.Granted && (op == node.OpAcquire || op == node.OpRepair):
		m.quarantined = false
	}
}

// view is a client as its claims see it.
type view struct{ *Client }

func (v view) Now() protocol.Instant { return v.uptime() }
func (v view) Time() time.Time       { return v.time() }
func (v view) Epoch(i int) uint64    { return v.members[i].epoch }
func (v view) Missed() uint32        { return v.missed }
func (v view) InOrder() protocol.Set { return protocol.All(Servers) }

func (v view) Offset() time.Duration {
	var seen []time.Duration
	for i := range v.members {
		if v.members[i].known {
			seen = append(seen, v.members[i].offset)
		}
	}
	return protocol.Median(seen)
}

func (v view) NoClocks() bool { return false }

func (v view) ClockKnown() bool {
	return slices.ContainsFunc(v.members[:], func(m member) bool { return m.known })
}

func (v view) Token(floor node.Token) node.Token {
	return min(max(protocol.NextToken(v.last, v.time().Add(v.Offset())), floor), node.MaxToken)
}

func (v view) Suspects() protocol.Set {
	var all [Servers]protocol.Health
	for i := range v.members {
		m := &v.members[i]
		all[i] = protocol.Health{Failing: m.failing, Late: m.late, InFlight: m.inFlight > 0, Since: m.since}
	}
	return protocol.Suspects(all[:], v.uptime(), protocol.Patience)
}

func (v view) MayProbe(i int) bool {
	m := &v.members[i]
	return protocol.MayProbe(m.probes, v.uptime()-m.probed, protocol.Patience)
}

func (v view) InQuarantine(i int) bool {
	m := &v.members[i]
	return m.quarantined && m.quarantineEnds.IsSet() && !m.quarantineEnds.Reached(v.uptime())
}

func (v view) Random(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(v.w.rand.Int64N(int64(d)))
}
