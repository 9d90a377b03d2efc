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
		p.expect(node.Absent, p.a, p.record(node.OpCheck, "monday"))
		p.expect(node.Granted, p.a, p.record(node.OpComplete, "monday"))
		p.expect(node.Granted, p.b, p.record(node.OpCheck, "monday"), p.record(node.OpComplete, "monday"))
		p.expect(node.Granted, p.a, p.record(node.OpCheck, "monday"))
	}},
	{"occurrences of two names, and two of one name, are independent", func(p *probe) {
		long := strings.Repeat("o", node.MaxOccurrence)
		p.expect(node.Granted, p.a, p.record(node.OpComplete, "monday"), p.record(node.OpComplete, "a b\x00c"))
		p.expect(node.Granted, p.a, p.record(node.OpComplete, long))
		for _, other := range []string{"tuesday", "monday ", "Monday", "a b", "a b\x00", "0", long[1:]} {
			p.expect(node.Absent, p.b, p.record(node.OpCheck, other))
		}
		p.expect(node.Absent, p.b, withName(p.record(node.OpCheck, "monday"), p.name+"/other"))
		for _, same := range []string{"monday", "a b\x00c", long} {
			p.expect(node.Granted, p.b, p.record(node.OpCheck, same))
		}
	}},
	{"a record is forgotten when its retention is over", func(p *probe) {
		p.expect(node.Granted, p.a, withRetention(p.record(node.OpComplete, "short"), p.h.Unit))
		p.expect(node.Granted, p.a, p.record(node.OpComplete, "long"))
		p.outlast(p.h.Unit)
		p.expect(node.Absent, p.b, p.record(node.OpCheck, "short"))
		p.expect(node.Granted, p.b, p.record(node.OpCheck, "long"))
		// A shorter retention does not shorten it.
		p.expect(node.Granted, p.b, withRetention(p.record(node.OpComplete, "long"), p.h.Unit))
		p.outlast(p.h.Unit)
		p.expect(node.Granted, p.a, p.record(node.OpCheck, "long"))
	}},
	{"a memory of a name has a beginning, and keeps it", func(p *probe) {
		r, first := p.memory(p.a, p.record(node.OpCheck, "one"))
		if off := first.Begun.Sub(r.Now); off > 0 || off < -p.h.Unit || !first.Since.Equal(first.Begun) {
			p.Fatalf("the memory began %v before now, and is complete since %v", -off, first.Since)
		}
		p.pass(p.h.Unit)
		for _, op := range []node.Op{node.OpComplete, node.OpCheck, node.OpRecords} {
			if _, m := p.memory(p.b, p.record(op, "two")); !p.same(m.Begun, first.Begun) || !p.same(m.Since, first.Since) {
				p.Fatalf("%v: the memory began at %v, and before it said %v", op, m.Begun, first.Begun)
			}
		}
		other := withRetention(withName(p.record(node.OpCheck, "one"), p.name+"/other"), p.h.Unit)
		_, was := p.memory(p.a, other)
		p.outlast(p.h.Unit)
		if _, m := p.memory(p.a, other); !m.Begun.After(was.Begun) {
			p.Fatalf("nobody asked for so long, and the memory began at %v, as before", m.Begun)
		}
	}},
	// A caller with a short retention would take a young memory for an old one.
	{"a memory knows the longest retention", func(p *probe) {
		for _, x := range []struct{ asked, want time.Duration }{
			{retention, retention}, {p.h.Unit, retention}, {retention + time.Minute, retention + time.Minute}, {retention, retention + time.Minute},
		} {
			for _, op := range []node.Op{node.OpCheck, node.OpComplete, node.OpRecords} {
				if _, m := p.memory(p.a, withRetention(p.record(op, "one"), x.asked)); m.Retention != x.want {
					p.Fatalf("%v with a retention of %v: the memory says %v, want %v", op, x.asked, m.Retention, x.want)
				}
			}
		}
	}},
	{"a memory is whole after an adoption that makes it whole", func(p *probe) {
		check := p.record(node.OpCheck, "one")
		_, m := p.memory(p.a, check)
		if m.Whole {
			p.Fatalf("a new memory is whole: %+v", m)
		}
		whole := p.adopt(p.begun(m))
		whole.Adopt.Whole, whole.Adopt.Since = true, m.Begun.Add(-time.Minute)
		p.expect(node.Granted, p.b, whole)
		if _, m2 := p.memory(p.a, check); !m2.Whole || !m2.Begun.Equal(m.Begun) ||
			m2.Since.Sub(m.Begun.Add(-time.Minute)).Abs() > time.Millisecond && !p.same(m2.Since, m.Begun.Add(-time.Minute)) {
			p.Errorf("after an adoption the memory is %+v, and was %+v", m2, m)
		}
		// It reaches back as far as before, at least.
		whole.Adopt.Since = m.Begun.Add(time.Minute)
		p.expect(node.Granted, p.b, whole)
		if _, m2 := p.memory(p.a, check); !m2.Whole || m2.Since.After(m.Begun) {
			p.Errorf("after another adoption the memory is %+v", m2)
		}
	}},
	{"records are read, the newest first", func(p *probe) {
		read := p.record(node.OpRecords, "")
		if _, m := p.memory(p.a, read); m.Count != 0 || len(m.Records) > 0 {
			p.Fatalf("before the first record there are %+v", m)
		}
		p.three()
		_, m := p.memory(p.b, read)
		if m.Count != 3 || len(m.Records) != 3 || m.Records[0].Occurrence != "first" || m.Records[1].Occurrence != "second" || m.Records[2].Occurrence != "third \x00 {}" {
			p.Fatalf("there are %d records: %q", m.Count, m.Records)
		}
		if off := m.Records[0].Left - m.Records[1].Left - time.Minute; off.Abs() > 30*time.Second {
			p.Errorf("the records are kept for %v and %v", m.Records[0].Left, m.Records[1].Left)
		}
		read.Skip = 2
		if _, m := p.memory(p.b, read); m.Count != 3 || len(m.Records) != 1 || m.Records[0].Occurrence != "third \x00 {}" {
			p.Errorf("without the first two there are %q", m.Records)
		}
		read.Skip = 4
		if _, m := p.memory(p.b, read); len(m.Records) != 0 {
			p.Errorf("without the first four there are %q", m.Records)
		}
	}},
	{"records of others are adopted by the memory that they are for", func(p *probe) {
		p.expect(node.Granted, p.a, p.record(node.OpComplete, "own"))
		_, m := p.memory(p.a, p.record(node.OpCheck, "own"))
		p.expect(node.Stale, p.b, p.adopt(p.begun(m).Add(-time.Second), node.Record{Occurrence: "lost", Left: p.long()}))
		p.expect(node.Absent, p.a, p.record(node.OpCheck, "lost"))
		p.expect(node.Granted, p.b, p.adopt(p.begun(m),
			node.Record{Occurrence: "theirs", Left: retention}, node.Record{Occurrence: "brief", Left: p.h.Unit}, node.Record{Occurrence: "own", Left: p.h.Unit}))
		p.expect(node.Granted, p.a, p.record(node.OpCheck, "theirs"))
		p.outlast(p.h.Unit)
		p.expect(node.Absent, p.a, p.record(node.OpCheck, "brief"))
		p.expect(node.Granted, p.a, p.record(node.OpCheck, "own"))
		if _, m := p.memory(p.a, p.record(node.OpCheck, "theirs")); m.Whole || m.Count != 2 {
			p.Errorf("a part of the records was adopted, and the memory is %+v", m)
		}
		req := p.adopt(m.Begun, make([]node.Record, node.MaxRecords+1)...)
		p.refused(p.context(), req)
	}},
	{"a record touches neither lock nor fence", func(p *probe) {
		t := p.take("one")
		p.expect(node.Granted, p.b, p.record(node.OpComplete, "monday"))
		p.heldBy("one")
		p.fence(t)
		p.expect(node.Granted, p.a, p.release("one", t), p.record(node.OpCheck, "monday"), p.breakUp(t+1))
		p.expect(node.Granted, p.a, p.record(node.OpCheck, "monday"))
		p.free()
	}},
	{"an occurrence that is not valid is an error without effect", func(p *probe) {
		for _, op := range []node.Op{node.OpComplete, node.OpCheck} {
			p.refused(p.context(), p.record(op, ""))
			p.refused(p.context(), p.record(op, strings.Repeat("o", node.MaxOccurrence+1)))
		}
	}},
	{"a look shows what is completed, the newest first, and since when that is complete", func(p *probe) {
		if l := p.look(p.name); len(l.Completed) > 0 || !l.Since.IsZero() {
			p.Errorf("before the first record it shows %v, complete since %v", l.Completed, l.Since)
		}
		p.expect(node.Absent, p.a, p.record(node.OpCheck, "asked for"))
		p.expect(node.Granted, p.a, withName(p.record(node.OpComplete, "other"), p.name+"/other"))
		r, first := p.three()
		l := p.look(p.name)
		if len(l.Completed) != 3 || l.Completed[0].Occurrence != "first" || l.Completed[1].Occurrence != "second" || l.Completed[2].Occurrence != "third \x00 {}" {
			p.Fatalf("it shows the records %q", l.Completed)
		}
		if off := l.Completed[1].Until.Sub(r.Now.Add(retention)); off.Abs() > p.h.Unit && !p.same(l.Completed[1].Until, r.Now.Add(retention)) {
			p.Errorf("it shows that a record is forgotten %v too late", off)
		}
		if !p.same(l.Since, first.Since) || l.Reply.Status != node.Absent {
			p.Errorf("it shows %v, complete since %v, want since %v", l.Reply.Status, l.Since, first.Since)
		}
		// They are neither locks nor listed.
		if all := p.list(p.name); len(all) > 0 {
			p.Errorf("listed are %v", all)
		}
		for i := range node.MaxCompleted {
			p.expect(node.Granted, p.a, p.record(node.OpComplete, fmt.Sprint("number ", i)))
		}
		if l := p.look(p.name); len(l.Completed) != node.MaxCompleted || l.Completed[0].Occurrence != "first" {
			p.Errorf("of more than %d records it shows %d, and first %q", node.MaxCompleted, len(l.Completed), l.Completed[:min(len(l.Completed), 1)])
		}
		p.expect(node.Granted, p.a, p.acquire("one", p.token(0)))
		if l := p.list(p.name)[p.name]; l.Reply.Value != "one" || len(l.Completed) > 0 || !l.Since.IsZero() {
			p.Errorf("listed is %+v, want its holder and no records", l)
		}
	}},
}

func (p *probe) record(op node.Op, occurrence string) node.Request {
	return node.Request{Op: op, Name: p.name, Occurrence: occurrence, Retention: retention}
}

// three records "second", "third" and "first", and one that is forgotten.
func (p *probe) three() (node.Reply, node.Memory) {
	p.Helper()
	r, m := p.memory(p.a, p.record(node.OpComplete, "second"))
	for occurrence, d := range map[string]time.Duration{"third \x00 {}": retention - time.Minute, "first": retention + time.Minute, "brief": p.h.Unit} {
		p.expect(node.Granted, p.a, withRetention(p.record(node.OpComplete, occurrence), d))
	}
	p.outlast(p.h.Unit)
	return r, m
}

// memory returns what a node remembers of the name.
func (p *probe) memory(n node.Node, req node.Request) (node.Reply, node.Memory) {
	p.Helper()
	r := p.do(n, req)
	if r.Memory == nil {
		p.Fatalf("%v: the answer does not say what the node remembers", req.Op)
	}
	return r, *r.Memory
}

// adopt is a request that stores records, for the memory that began then.
func (p *probe) adopt(begun time.Time, records ...node.Record) node.Request {
	req := p.record(node.OpAdopt, "")
	req.Adopt = &node.Adoption{Begun: begun, Records: records}
	return req
}
