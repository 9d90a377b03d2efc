package nodetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// keepClaims are about shares that live on after their release.
var keepClaims = []claim{
	{"a release with Keep leaves the name taken until Keep is over", func(p *probe) {
		t := p.take("one")
		p.expect(node.Granted, p.b, keeping(p.release("one", t), p.long()))
		p.heldBy("one")
		p.expect(node.Held, p.a, p.acquire("two", t+1))
		p.expect(node.Granted, p.a, keeping(p.release("one", t), p.h.Unit))
		p.outlast(p.h.Unit)
		p.free()
		p.expect(node.Granted, p.a, p.acquire("two", t+2))
		p.expect(node.Held, p.b, keeping(p.release("one", t), p.long()))
		p.expect(node.Granted, p.a, p.release("two", t+2))
		p.expect(node.Absent, p.b, keeping(p.release("one", t), p.long()))
		p.free()
	}},
	{"a release with Keep never prolongs", func(p *probe) {
		t, brief := p.token(0), 4*p.h.Unit // three requests, on a busy server
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", t), brief))
		p.expect(node.Granted, p.b, keeping(p.release("one", t), p.long()))
		// Nor does a second one.
		p.expect(node.Granted, p.b, keeping(p.release("one", t), p.long()))
		p.outlast(brief)
		p.free()
	}},
	{"a release with Keep raises the fence and leaves the queue", func(p *probe) {
		t := p.take("one")
		p.expect(node.Granted, p.a, keeping(p.release("one", t+5), p.long()))
		p.fence(t + 5)
		p.heldBy("one")
	}},
}

func keeping(req node.Request, keep time.Duration) node.Request {
	req.Keep = keep
	return req
}

// recordClaims are for nodes that record what is completed.
var recordClaims = []claim{
	{"an occurrence is completed when it was recorded", func(p *probe) {
		p.recorded(node.Absent, p.a, p.record(node.OpCheck, "monday"))
		p.recorded(node.Granted, p.a, p.record(node.OpComplete, "monday"))
		p.recorded(node.Granted, p.b, p.record(node.OpCheck, "monday"), p.record(node.OpComplete, "monday"))
		p.recorded(node.Granted, p.a, p.record(node.OpCheck, "monday"))
	}},
	{"occurrences of two names, and two of one name, are independent", func(p *probe) {
		long := strings.Repeat("o", node.MaxOccurrence)
		p.recorded(node.Granted, p.a, p.record(node.OpComplete, "monday"), p.record(node.OpComplete, "a b\x00c"))
		p.recorded(node.Granted, p.a, p.record(node.OpComplete, long))
		for _, other := range []string{"tuesday", "monday ", "Monday", "a b", "a b\x00", "0", long[1:]} {
			p.recorded(node.Absent, p.b, p.record(node.OpCheck, other))
		}
		p.recorded(node.Absent, p.b, ofOther(p.record(node.OpCheck, "monday")))
		for _, same := range []string{"monday", "a b\x00c", long} {
			p.recorded(node.Granted, p.b, p.record(node.OpCheck, same))
		}
	}},
	{"a record is forgotten when its retention is over", func(p *probe) {
		p.recorded(node.Granted, p.a, keptFor(p.record(node.OpComplete, "short"), p.h.Unit))
		p.recorded(node.Granted, p.a, p.record(node.OpComplete, "long"))
		p.outlast(p.h.Unit)
		p.recorded(node.Absent, p.b, p.record(node.OpCheck, "short"))
		p.recorded(node.Granted, p.b, p.record(node.OpCheck, "long"))
		// A shorter retention does not shorten it.
		p.recorded(node.Granted, p.b, keptFor(p.record(node.OpComplete, "long"), p.h.Unit))
		p.outlast(p.h.Unit)
		p.recorded(node.Granted, p.a, p.record(node.OpCheck, "long"))
	}},
	{"a memory of a name has a beginning, and keeps it", func(p *probe) {
		first := p.memory(p.a, p.record(node.OpCheck, "one"))
		if off := first.Begun.Sub(first.Now); off > 0 || off < -p.h.Unit || !first.Since.Equal(first.Begun) {
			p.Fatalf("the memory began %v before now, and is complete since %v", -off, first.Since)
		}
		p.pass(p.h.Unit)
		for _, op := range []node.Op{node.OpComplete, node.OpCheck, node.OpRecords} {
			if m := p.memory(p.b, p.record(op, "two")); !p.same(m.Begun, first.Begun) || !p.same(m.Since, first.Since) {
				p.Fatalf("%v: the memory began at %v, and before it said %v", op, m.Begun, first.Begun)
			}
		}
		other := keptFor(ofOther(p.record(node.OpCheck, "one")), p.h.Unit)
		was := p.memory(p.a, other)
		p.outlast(p.h.Unit)
		if m := p.memory(p.a, other); !m.Begun.After(was.Begun) {
			p.Fatalf("nobody asked for so long, and the memory began at %v, as before", m.Begun)
		}
	}},
	// A caller with a short retention would take a young memory for an old one.
	{"a memory knows the longest retention", func(p *probe) {
		for _, x := range []struct{ asked, want time.Duration }{
			{retention, retention}, {p.h.Unit, retention}, {retention + time.Minute, retention + time.Minute}, {retention, retention + time.Minute},
		} {
			for _, op := range []node.Op{node.OpCheck, node.OpComplete, node.OpRecords} {
				if m := p.memory(p.a, keptFor(p.record(op, "one"), x.asked)); m.Retention != x.want {
					p.Fatalf("%v with a retention of %v: the memory says %v, want %v", op, x.asked, m.Retention, x.want)
				}
			}
		}
	}},
	{"a memory is whole after an adoption that makes it whole", func(p *probe) {
		check := p.record(node.OpCheck, "one")
		m := p.memory(p.a, check)
		if m.Whole {
			p.Fatalf("a new memory is whole: %+v", m)
		}
		whole := p.adopt(p.begun(m))
		whole.Whole, whole.Since = true, m.Begun.Add(-time.Minute)
		p.recorded(node.Granted, p.b, whole)
		if m2 := p.memory(p.a, check); !m2.Whole || !m2.Begun.Equal(m.Begun) ||
			m2.Since.Sub(m.Begun.Add(-time.Minute)).Abs() > time.Millisecond && !p.same(m2.Since, m.Begun.Add(-time.Minute)) {
			p.Errorf("after an adoption the memory is %+v, and was %+v", m2, m)
		}
		// It reaches back as far as before, at least.
		whole.Since = m.Begun.Add(time.Minute)
		p.recorded(node.Granted, p.b, whole)
		if m2 := p.memory(p.a, check); !m2.Whole || m2.Since.After(m.Begun) {
			p.Errorf("after another adoption the memory is %+v", m2)
		}
	}},
	{"records are read, the newest first", func(p *probe) {
		read := p.record(node.OpRecords, "")
		if m := p.memory(p.a, read); m.Count != 0 || len(m.Records) > 0 {
			p.Fatalf("before the first record there are %+v", m)
		}
		p.three()
		m := p.memory(p.b, read)
		if m.Count != 3 || len(m.Records) != 3 || m.Records[0].Occurrence != "first" || m.Records[1].Occurrence != "second" || m.Records[2].Occurrence != "third \x00 {}" {
			p.Fatalf("there are %d records: %q", m.Count, m.Records)
		}
		if off := m.Records[0].Left - m.Records[1].Left - time.Minute; off.Abs() > 30*time.Second {
			p.Errorf("the records are kept for %v and %v", m.Records[0].Left, m.Records[1].Left)
		}
		read.Skip = 2
		if m := p.memory(p.b, read); m.Count != 3 || len(m.Records) != 1 || m.Records[0].Occurrence != "third \x00 {}" {
			p.Errorf("without the first two there are %q", m.Records)
		}
		read.Skip = 4
		if m := p.memory(p.b, read); len(m.Records) != 0 {
			p.Errorf("without the first four there are %q", m.Records)
		}
	}},
	{"records of others are adopted by the memory that they are for", func(p *probe) {
		p.recorded(node.Granted, p.a, p.record(node.OpComplete, "own"))
		m := p.memory(p.a, p.record(node.OpCheck, "own"))
		p.recorded(node.Stale, p.b, p.adopt(p.begun(m).Add(-time.Second), node.Record{Occurrence: "lost", Left: p.long()}))
		p.recorded(node.Absent, p.a, p.record(node.OpCheck, "lost"))
		p.recorded(node.Granted, p.b, p.adopt(p.begun(m),
			node.Record{Occurrence: "theirs", Left: retention}, node.Record{Occurrence: "brief", Left: p.h.Unit}, node.Record{Occurrence: "own", Left: p.h.Unit}))
		p.recorded(node.Granted, p.a, p.record(node.OpCheck, "theirs"))
		p.outlast(p.h.Unit)
		p.recorded(node.Absent, p.a, p.record(node.OpCheck, "brief"))
		p.recorded(node.Granted, p.a, p.record(node.OpCheck, "own"))
		if m := p.memory(p.a, p.record(node.OpCheck, "theirs")); m.Whole || m.Count != 2 {
			p.Errorf("a part of the records was adopted, and the memory is %+v", m)
		}
		p.refusedRecord(p.adopt(m.Begun, make([]node.Record, node.MaxRecords+1)...))
	}},
	{"a record touches neither lock nor fence", func(p *probe) {
		t := p.take("one")
		p.recorded(node.Granted, p.b, p.record(node.OpComplete, "monday"))
		p.heldBy("one")
		p.fence(t)
		p.expect(node.Granted, p.a, p.release("one", t))
		p.recorded(node.Granted, p.a, p.record(node.OpCheck, "monday"))
		p.expect(node.Granted, p.a, p.breakUp(t+1))
		p.recorded(node.Granted, p.a, p.record(node.OpCheck, "monday"))
		p.free()
	}},
	{"an occurrence that is not valid is an error without effect", func(p *probe) {
		for _, op := range []node.Op{node.OpComplete, node.OpCheck} {
			p.refusedRecord(p.record(op, ""))
			p.refusedRecord(p.record(op, strings.Repeat("o", node.MaxOccurrence+1)))
		}
	}},
	{"a look shows what is completed, the newest first, and since when that is complete", func(p *probe) {
		if l := p.look(p.name); len(l.Completed) > 0 || !l.Since.IsZero() {
			p.Errorf("before the first record it shows %v, complete since %v", l.Completed, l.Since)
		}
		p.recorded(node.Absent, p.a, p.record(node.OpCheck, "asked for"))
		p.recorded(node.Granted, p.a, ofOther(p.record(node.OpComplete, "other")))
		first := p.three()
		l := p.look(p.name)
		if len(l.Completed) != 3 || l.Completed[0].Occurrence != "first" || l.Completed[1].Occurrence != "second" || l.Completed[2].Occurrence != "third \x00 {}" {
			p.Fatalf("it shows the records %q", l.Completed)
		}
		until := l.Reply.Now.Add(l.Completed[1].Left)
		if off := until.Sub(first.Now.Add(retention)); off.Abs() > p.h.Unit && !p.same(until, first.Now.Add(retention)) {
			p.Errorf("it shows that a record is forgotten %v too late", off)
		}
		if !p.same(l.Since, first.Since) || l.Reply.Status != node.Absent {
			p.Errorf("it shows %v, complete since %v, want since %v", l.Reply.Status, l.Since, first.Since)
		}
		// They are neither locks nor listed.
		if all := p.list(p.name); len(all) > 0 {
			p.Errorf("listed are %v", all)
		}
		for i := range node.MaxListed {
			p.recorded(node.Granted, p.a, p.record(node.OpComplete, fmt.Sprint("number ", i)))
		}
		if l := p.look(p.name); len(l.Completed) != node.MaxListed || l.Completed[0].Occurrence != "first" {
			p.Errorf("of more than %d records it shows %d, and first %q", node.MaxListed, len(l.Completed), l.Completed[:min(len(l.Completed), 1)])
		}
		p.expect(node.Granted, p.a, p.acquire("one", p.token(0)))
		if l := p.list(p.name)[p.name]; l.Reply.Value != "one" || len(l.Completed) > 0 || !l.Since.IsZero() {
			p.Errorf("listed is %+v, want its holder and no records", l)
		}
	}},
}

func (p *probe) record(op node.Op, occurrence string) node.RecordsRequest {
	return node.RecordsRequest{Op: op, Name: p.name, Occurrence: occurrence, Retention: retention}
}

// ofOther is a request for another name.
func ofOther(req node.RecordsRequest) node.RecordsRequest {
	req.Name += "/other"
	return req
}

func keptFor(req node.RecordsRequest, retention time.Duration) node.RecordsRequest {
	req.Retention = retention
	return req
}

// recorded executes requests, like expect.
func (p *probe) recorded(want node.Status, n node.Node, reqs ...node.RecordsRequest) {
	p.Helper()
	for _, req := range reqs {
		if m := p.memory(n, req); m.Status != want {
			p.Fatalf("%v of %q: answered %q, want %q", req.Op, req.Occurrence, m.Status, want)
		}
	}
}

// refusedRecord checks that a request fails and leaves no trace.
func (p *probe) refusedRecord(req node.RecordsRequest) {
	p.Helper()
	if m, err := p.recorder(p.a).Records(p.context(), req); err == nil {
		p.Errorf("the node answered %q, want an error", m.Status)
	}
	p.wantFence(p.free(), 0)
}

// three records "second", "third" and "first", and one that is forgotten.
func (p *probe) three() node.RecordsReply {
	p.Helper()
	m := p.memory(p.a, p.record(node.OpComplete, "second"))
	for occurrence, d := range map[string]time.Duration{"third \x00 {}": retention - time.Minute, "first": retention + time.Minute, "brief": p.h.Unit} {
		p.recorded(node.Granted, p.a, keptFor(p.record(node.OpComplete, occurrence), d))
	}
	p.outlast(p.h.Unit)
	return m
}

// recorder returns what a node records with.
func (p *probe) recorder(n node.Node) node.Recorder {
	p.Helper()
	r, ok := n.(node.Recorder)
	if !ok {
		p.Fatalf("%v is no node.Recorder, which the suite needs", n)
	}
	return r
}

// memory returns what a node remembers of the name.
func (p *probe) memory(n node.Node, req node.RecordsRequest) node.RecordsReply {
	p.Helper()
	p.late.asks()
	if p.h.Observes {
		p.used[req.Name] = true
	}
	m, err := p.recorder(n).Records(p.context(), req)
	if err != nil || m.Now.IsZero() || m.Begun.IsZero() {
		p.Fatalf("%v: %+v, %v, want the time, and when the memory began", req.Op, m, err)
	}
	p.late.answered(node.Request{Op: req.Op, Name: req.Name, Fencing: node.Fencing{Retention: req.Retention}}, node.Reply{Status: m.Status})
	return m
}

// adopt is a request that stores records, for the memory that began then.
func (p *probe) adopt(begun time.Time, records ...node.Record) node.RecordsRequest {
	req := p.record(node.OpAdopt, "")
	req.Begun, req.Records = begun, records
	return req
}
