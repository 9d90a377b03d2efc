package nodetest

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/redlatch/redlatch/node"
)

// guardClaims is for nodes with a marker. There is one marker, so it is one claim.
var guardClaims = []claim{
	{"a node obeys its marker", func(p *probe) {
		const lineage = "0a1b2c3d"
		ours, theirs := p.membership(), p.membership()
		mark := func(want node.Status, what node.Mark, g *node.Guard) node.MarkReply {
			p.Helper()
			p.late.asks()
			reply, err := p.a.(node.Guarded).Mark(p.context(), node.MarkRequest{Mark: what, Guard: g, Lineage: lineage, Epochs: lineage + ":1"})
			p.late.answered(node.Request{Op: node.OpMark}, node.Reply{Status: reply.Status, Left: reply.Left})
			if err != nil || reply.Status != want || reply.Guard == nil || reply.Now.IsZero() {
				p.Fatalf("mark %d: %+v, %v, want %v with the marker and the time", what, reply, err, want)
			}
			return reply
		}
		guarded := func(req node.Request, g *node.Guard) node.Request {
			req.Guard = g
			return req
		}
		off := func(g *node.Guard) *node.Guard {
			changed := *g
			changed.Off = true
			return &changed
		}
		t := p.token(0)

		// A node that joins a membership is quarantined, whatever it was before.
		first := mark(node.Quarantined, node.MarkReplace, ours)
		if first.Guard.Membership != ours.Membership || first.Left <= 0 {
			p.Errorf("the marker is for %s, with %v left, want %s and some", first.Guard.Membership, first.Left, ours.Membership)
		}
		reply := p.expect(node.Quarantined, p.b, guarded(p.acquire("one", t), ours))
		if reply.Left <= 0 || reply.Left > first.Left {
			p.Errorf("quarantined for another %v, after %v", reply.Left, first.Left)
		}
		p.expect(node.Quarantined, p.b, guarded(p.acquire("one", t), off(ours)))
		p.expect(node.Misconfigured, p.b, guarded(p.acquire("one", t), theirs))
		mark(node.Quarantined, node.MarkFresh, ours) // it is known here
		p.outlast(first.Left)
		t = p.token(0) // the first may be too old on a slow store

		// When the quarantine is over, it grants to its membership and to no other.
		epoch := mark(node.Granted, node.MarkRead, ours).Epoch
		if reply := p.expect(node.Granted, p.b, guarded(p.acquire("one", t), ours)); reply.Epoch != epoch || reply.Lineage != lineage || reply.Epochs.Of(lineage) != 1 || reply.Server == "" {
			p.Errorf("a grant by the server %q has epoch %d and lineage %q, and notes %q, want %d and %q", reply.Server, reply.Epoch, reply.Lineage, reply.Epochs, epoch, lineage)
		}
		for _, g := range []*node.Guard{theirs, off(theirs)} {
			p.expect(node.Misconfigured, p.b, guarded(p.extend("one", t), g))
			p.expect(node.Misconfigured, p.b, guarded(withName(p.acquire("two", t), p.name+"/other"), g))
			p.expect(node.Misconfigured, p.b, guarded(p.breakUp(t+1), g))
		}
		mark(node.Misconfigured, node.MarkWrite, theirs)
		p.expect(node.Granted, p.a, guarded(p.extend("one", t), ours))

		// A client that knows of a later marker does not trust this one.
		later := guarded(withName(p.acquire("two", t), p.name+"/other"), ours)
		later.Epoch = epoch + 1
		p.expect(node.Quarantined, p.b, later)
		reserving := guarded(p.reserving("one", p.token(0)+1, 3), ours)
		reserving.Epoch = epoch + 1
		p.reserve(false, reserving)
		reserving.Epoch = epoch
		p.reserve(true, reserving)

		// A node that is barred grants to nobody. What is held can be released.
		if barred := mark(node.Misconfigured, node.MarkBar, theirs); barred.Guard.From != ours.Nodes {
			p.Errorf("the marker of the barred node says that it was of %q, want %q", barred.Guard.From, ours.Nodes)
		}
		for _, g := range []*node.Guard{ours, theirs} {
			p.expect(node.Misconfigured, p.b, guarded(withName(p.acquire("two", t), p.name+"/other"), g))
		}
		p.expect(node.Granted, p.a, p.release("one", t))
		p.free()
		mark(node.Quarantined, node.MarkReplace, theirs)
	}},
}

// membership returns the guard of a membership that nobody else has.
func (p *probe) membership() *node.Guard {
	id := make([]byte, 8)
	rand.Read(id)
	return &node.Guard{Membership: hex.EncodeToString(id), Nodes: "nodetest", MaxTTL: p.long(), Window: window, Quarantine: 30 * p.h.Unit}
}
