package explore

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file says which states are one. Times are relative to now, tokens to the
// right clock, requests are numbered from the claim's last, and values are named
// by the place of their claim. Nodes are sorted, and so are two clients that
// have the same to do.

// Print identifies a state in the set of those seen. It has 128 bits: two states
// do not have the same by chance.
type Print [2]uint64

// printer makes prints. Its buffers are used again.
type printer struct {
	seeds [2]maphash.Seed
	b     []byte
	nodes [MaxServers][]byte
	items [][]byte
	kept  [][]byte // buffers of items
}

// item returns an empty buffer for the n-th item.
func (p *printer) item(n int) []byte {
	if n == len(p.kept) {
		p.kept = append(p.kept, make([]byte, 0, 64))
	}
	return p.kept[n]
}

func newPrinter() *printer {
	return &printer{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (p *printer) hash(b []byte) Print {
	return Print{maphash.Bytes(p.seeds[0], b), maphash.Bytes(p.seeds[1], b)}
}

// print returns the print of a state.
func (m *machine) print(p *printer, s *State) Print {
	f := m.frame(s)
	var canon [maxClaims]protocol.Claim
	for k, c := range s.claims {
		if c != nil {
			canon[k] = c.Canonical()
		}
	}
	a := p.hash(m.encode(p, s, f, &canon, 0))
	if !m.sym {
		return a
	}
	b := p.hash(m.encode(p, s, f, &canon, MaxTries))
	if b[0] < a[0] {
		return b
	}
	return a
}

// frame is what a state is relative to. A token that is further below the clock
// than Least is not granted by anybody, and no lease that was acquired with one can
// be valid still.
func (m *machine) frame(s *State) protocol.Frame {
	ticks := m.in.Window + 2*m.in.Skew + m.in.TTL*(2+max(m.in.Extensions[0], m.in.Extensions[1])) + 2
	for _, p := range m.in.Proposals {
		ticks = max(ticks, int(-p/ms/2)+m.in.TTL+2)
	}
	return protocol.Frame{Now: s.now, Clock: s.clock().UnixMicro(), Least: int64(ticks) * Tick.Microseconds()}
}

// encode writes the state down. Claim k takes the place of claim k^swap.
func (m *machine) encode(p *printer, s *State, f protocol.Frame, canon *[maxClaims]protocol.Claim, swap int) []byte {
	b := append(p.b[:0], s.dups, s.empty, s.old, s.flush, s.back, s.left)
	b = append(b, s.bad...)
	b = add(b, f.Token(m.dead(s, s.top)), f.Token(m.dead(s, s.written)), f.Token(s.broken))
	for place := range s.claims {
		k := place ^ swap
		c := s.claims[k]
		if c == nil {
			b = append(b, 0)
			continue
		}
		if c.over && canon[k].State() == protocol.Gone && c.InFlight() == 0 {
			b = append(b, 1)
			continue
		}
		b = append(b, 2, byte(c.extensions), byte(c.downgrades), flags(c.over, c.broken))
		if c.came != 0 && c.State() == protocol.New {
			b = append(add(b, int64(c.came-s.now), f.Token(m.dead(s, c.floor))), flags(c.ahead[:]...))
		}
		if !c.over && !c.State().IsHeld() {
			b = add(b, int64(c.rounds), f.Token(m.dead(s, c.floor)))
			if m.in.Waits {
				b = add(b, f.Token(c.asked))
			}
		}
		b = canon[k].AppendTo(b, f)
	}
	if m.in.Passes {
		b = s.line.AppendTo(append(b, s.let, s.beside, flags(s.unheard)), f, func(caller any) byte { return byte(caller.(int)) })
	}
	if m.changes() {
		b = append(b, s.runs, s.silences, byte(s.returns[0]), byte(s.returns[1]), flags(s.op != nil))
		if s.op != nil {
			b = s.op.AppendTo(b)
		}
		for _, o := range s.orders {
			b = add(append(b, byte(o.server), byte(o.i), byte(o.req.Mark), flags(o.req.Guard.Told)), int64(o.req.Guard.Generation), int64(o.req.Least))
		}
	}
	for i := range m.in.Servers {
		p.nodes[i] = m.encodeServer(p, p.nodes[i][:0], s, f, canon, i, swap)
	}
	nodes := p.nodes[:m.in.Servers]
	if !m.changes() && !m.in.Failback {
		slices.SortFunc(nodes, bytes.Compare)
	}
	for _, n := range nodes {
		b = binary.AppendUvarint(b, uint64(len(n)))
		b = append(b, n...)
	}
	p.b = b
	return b
}

// dead forgets a token of the checks that is below every token which a lease can
// be acquired with from now on.
func (m *machine) dead(s *State, t node.Token) node.Token {
	if !m.in.KeepAll && t != 0 && int64(t) < s.clock().UnixMicro()-int64(m.in.Window+m.in.Skew+m.in.TTL+1)*Tick.Microseconds() {
		return 0
	}
	return t
}

func (m *machine) encodeServer(p *printer, b []byte, s *State, f protocol.Frame, canon *[maxClaims]protocol.Claim, i, swap int) []byte {
	b = append(b, byte(s.skew[i]), s.reached>>i&1, s.freed>>i&1)
	b = m.encodeData(b, s, f, i, false, swap)
	b = m.encodeData(b, s, f, i, true, swap)
	for place := range s.claims {
		k := place ^ swap
		if c := s.claims[k]; c != nil && canon[k].State() != protocol.New {
			if n := slices.Index(m.lists[m.client(k)], i); n >= 0 {
				b = canon[k].AppendNodeTo(b, n, f)
			}
		}
		b = append(b, s.trusts[m.client(k)]>>i&1)
		if m.in.Failback {
			b = append(append(b, s.lineages[m.client(k)][i]...), s.epochs[m.client(k)]...)
		}
	}
	p.items = p.items[:0]
	for _, msg := range s.messages {
		if msg.server == i {
			p.items = append(p.items, m.encodeMessage(p.item(len(p.items)), s, f, msg, swap))
		}
	}
	for _, w := range s.wakes {
		if m.lists[m.client(w.claim)][w.node] == i {
			p.items = append(p.items, add([]byte{0xff, byte(w.claim ^ swap), byte(w.Kind)}, f.Token(w.Fence)))
		}
	}
	slices.SortFunc(p.items, bytes.Compare)
	for _, x := range p.items {
		b = append(b, byte(len(x)))
		b = append(b, x...)
	}
	return b
}

// add appends numbers.
func add(b []byte, all ...int64) []byte {
	for _, x := range all {
		b = binary.AppendVarint(b, x)
	}
	return b
}

// flags is a bit for each.
func flags(all ...bool) (b byte) {
	for i, is := range all {
		if is {
			b |= 1 << i
		}
	}
	return b
}

// encodeData writes down what a server stores, or has saved.
func (m *machine) encodeData(b []byte, s *State, f protocol.Frame, i int, saved bool, swap int) []byte {
	srv := s.servers[i]
	if saved {
		if srv = s.saved[i]; srv == nil || s.old == 0 {
			return append(b, 0)
		}
	}
	now := s.clockOf(i)
	b = append(b, 1)
	e := entry(srv)
	for _, h := range e.Holders {
		if h.Until.After(now) {
			b = add(append(b, 1+m.place(h.Value, swap), byte(h.Mode), h.Slots, h.Slot), int64(h.Until.Sub(now)))
			if h.Mode != node.Exclusive || m.in.Passes {
				b = add(b, f.Token(h.Token)) // acquire, or a reserve, reads it
			}
		}
	}
	b = append(b, 0)
	fence, left := m.fence(s, i, e.Fence, e.FenceUntil.Sub(now))
	floor, _ := m.fence(s, i, e.Floor, e.FenceUntil.Sub(now))
	b = add(b, f.Token(fence), int64(left), f.Token(floor))
	if left := e.BreakUntil.Sub(now); left > 0 { // Broken is for listings only
		b = add(b, f.Token(e.Break), int64(min(left, time.Minute)))
	}
	b = append(b, 0)
	for _, x := range e.Ended {
		if x.Until.After(now) {
			b = add(append(b, 1+m.place(x.Value, swap)), int64(x.Until.Sub(now)))
		}
	}
	q := &e.Queue
	b = append(b, 0, byte(len(q.Waiters)))
	if m.in.Waits && len(q.Waiters) > 0 { // else nobody is in a queue
		for _, w := range q.Waiters {
			b = add(append(b, 1+m.place(w.Value, swap), byte(w.Mode), w.Slots), w.Ticket-f.Clock)
		}
		b = append(b, m.place(q.Head, swap), byte(q.Notice), m.place(q.Near, swap), byte(len(q.Called)), byte(q.Reach), flags(q.NearTurn))
		b = add(b, int64(q.Lapses.Sub(now)))
	}
	k := &srv.Marker
	b = append(b, k.Reason...)
	if k.Guard.Membership != "" {
		b = append(b, k.Guard.Membership[15])
	}
	b = append(b, flags(k.ID == srv.ID, k.Guard.Told))
	if m.changes() {
		b = append(append(b, byte(k.Guard.Generation), byte(len(k.Guard.From))), k.Guard.From...)
	}
	if m.in.Failback {
		b = append(append(append(b, byte(k.Epoch), byte(len(k.Epochs))), k.Epochs...), k.Lineage...)
	}
	return add(b, int64(max(0, min(k.TrustedFrom.Sub(now), time.Hour))))
}

// fence forgets a fence that the window makes up for, and until when one is
// remembered that the window will make up for before it is forgotten. A repair
// asks whether the fence is at its token, and so with repairs fences are kept.
// Where there are readers or slots, nothing is forgotten: a node compares the
// proposals of a holder with fence and floor, and not with the window.
func (m *machine) fence(s *State, i int, fence node.Token, left time.Duration) (node.Token, time.Duration) {
	if fence == 0 || left <= 0 {
		return 0, 0
	}
	if m.shared() && left > time.Minute {
		return fence, time.Hour // for ever
	}
	if m.in.KeepAll || m.shared() {
		return fence, left
	}
	past := m.past(s, i)
	switch {
	case int64(fence) < past && !m.in.Repairs:
		return 0, 0
	case int64(fence)-left.Microseconds() < past || left > time.Minute:
		return fence, time.Hour
	}
	return fence, left
}

// past is below every token that a server accepts for a free name, now or later.
func (m *machine) past(s *State, i int) int64 {
	clock := s.clockOf(i)
	if s.back > 0 && s.skew[i] > 0 {
		clock = clock.Add(time.Duration(-2*s.skew[i]) * Tick)
	}
	return clock.UnixMicro() - int64(m.in.Window)*Tick.Microseconds()
}

func (m *machine) place(value string, swap int) byte {
	for k, v := range m.values {
		if v == value {
			return byte(k ^ swap)
		}
	}
	return 0xfe
}

func (m *machine) encodeMessage(b []byte, s *State, f protocol.Frame, msg *message, swap int) []byte {
	b = append(b, byte(msg.claim^swap), byte(msg.req.Op), flags(msg.awaited, msg.done, msg.req.Once, msg.req.Wait, msg.req.Guard == nil, msg.again))
	b = add(b, f.Token(msg.req.Token), int64(msg.req.Reserve), int64(msg.req.NoRepair))
	if m.shared() { // a claim's requests differ in their slots, or since a downgrade
		b = append(b, byte(msg.req.Mode), msg.req.Slot)
	}
	if msg.awaited {
		b = add(b, int64(s.claims[msg.claim].Since(msg.seq)), int64(s.now-msg.sent))
	}
	if msg.req.Wait {
		b = add(b, msg.req.Ticket-f.Clock)
	}
	if msg.req.Op == node.OpRepair && !msg.req.Until.IsZero() {
		b = add(b, int64(max(-Tick, msg.req.Until.Sub(s.clockOf(msg.server)))))
	}
	if r := msg.reply; r != nil {
		b = append(b, flags(r.Confirmed), byte(r.Status), byte(r.Rank), byte(r.Share.Mode), r.Share.Slots, r.Share.Slot, byte(r.Free))
		b = add(b, r.Next-f.Clock, f.Token(r.Fence), f.Clock64(r.Now.UnixMicro()))
	}
	return b
}
