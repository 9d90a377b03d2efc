package nodetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// keepClaims are about shares that live on after their release.
func keepClaims() []claim {
	return []claim{
		{"a release with Keep leaves the name taken until Keep is over", keepHolds},
		{"a release with Keep never prolongs", keepDoesNotProlong},
		{"a release with Keep raises the fence and leaves the queue", keepRaisesTheFence},
	}
}

func keeping(req node.Request, keep time.Duration) node.Request {
	req.Keep = keep
	return req
}

func keepHolds(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", t))
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
}

func keepDoesNotProlong(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, withTTL(p.acquire("one", t), p.h.Unit))
	p.expect(node.Granted, p.b, keeping(p.release("one", t), p.long()))
	// Nor does a second one.
	p.expect(node.Granted, p.b, keeping(p.release("one", t), p.long()))
	p.outlast(p.h.Unit)
	p.free()
}

func keepRaisesTheFence(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", t))
	p.expect(node.Granted, p.a, keeping(p.release("one", t+5), p.long()))
	p.fence(t + 5)
	p.heldBy("one")
}

// markClaims are for nodes that remember what is done.
func markClaims(h Harness) []claim {
	all := []claim{
		{"an occurrence is done when it was remembered", markIsRecalled},
		{"occurrences of two names, and two of one name, are independent", marksAreIndependent},
		{"a mark is forgotten when its retention is over", markExpires},
		{"a node notes since when it remembers", sinceIsKept},
		{"a mark touches neither lock nor fence", markTouchesNothing},
		{"an occurrence that is not valid is an error without effect", badOccurrences},
	}
	if h.Lists {
		all = append(all, claim{"a look shows what is done, the newest first, and since when it is remembered", marksAreShown})
	}
	return all
}

func noMarks(p *probe) {
	p.refused(p.context(), p.mark(node.OpRemember, "monday"))
	p.refused(p.context(), p.mark(node.OpRecall, "monday"))
}

func (p *probe) mark(op node.Op, occurrence string) node.Request {
	return node.Request{Op: op, Name: p.name, Occurrence: occurrence, Retention: retention}
}

func markIsRecalled(p *probe) {
	p.expect(node.Absent, p.a, p.mark(node.OpRecall, "monday"))
	p.expect(node.Granted, p.a, p.mark(node.OpRemember, "monday"))
	p.expect(node.Granted, p.b, p.mark(node.OpRecall, "monday"))
	p.expect(node.Granted, p.b, p.mark(node.OpRemember, "monday"))
	p.expect(node.Granted, p.a, p.mark(node.OpRecall, "monday"))
}

func marksAreIndependent(p *probe) {
	long := strings.Repeat("o", node.MaxOccurrence)
	p.expect(node.Granted, p.a, p.mark(node.OpRemember, "monday"))
	p.expect(node.Granted, p.a, p.mark(node.OpRemember, "a b\x00c"))
	p.expect(node.Granted, p.a, p.mark(node.OpRemember, long))
	for _, other := range []string{"tuesday", "monday ", "Monday", "a b", "a b\x00", "0", long[1:]} {
		p.expect(node.Absent, p.b, p.mark(node.OpRecall, other))
	}
	p.expect(node.Absent, p.b, withName(p.mark(node.OpRecall, "monday"), p.name+"/other"))
	for _, same := range []string{"monday", "a b\x00c", long} {
		p.expect(node.Granted, p.b, p.mark(node.OpRecall, same))
	}
}

func markExpires(p *probe) {
	p.expect(node.Granted, p.a, withRetention(p.mark(node.OpRemember, "short"), p.h.Unit))
	p.expect(node.Granted, p.a, p.mark(node.OpRemember, "long"))
	p.outlast(p.h.Unit)
	p.expect(node.Absent, p.b, p.mark(node.OpRecall, "short"))
	p.expect(node.Granted, p.b, p.mark(node.OpRecall, "long"))
	// A shorter retention does not shorten it.
	p.expect(node.Granted, p.b, withRetention(p.mark(node.OpRemember, "long"), p.h.Unit))
	p.outlast(p.h.Unit)
	p.expect(node.Granted, p.a, p.mark(node.OpRecall, "long"))
}

func sinceIsKept(p *probe) {
	first := p.do(p.a, p.mark(node.OpRecall, "one"))
	if off := first.Since.Sub(first.Now); off > 0 || off < -p.h.Tolerance {
		p.Fatalf("it remembers since %v before now", -off)
	}
	p.pass(p.h.Unit)
	for _, op := range []node.Op{node.OpRemember, node.OpRecall} {
		if r := p.do(p.b, p.mark(op, "two")); !r.Since.Equal(first.Since) {
			p.Fatalf("%v: it remembers since %v, and before it said %v", op, r.Since, first.Since)
		}
	}
	other := withRetention(withName(p.mark(node.OpRecall, "one"), p.name+"/other"), p.h.Unit)
	was := p.do(p.a, other)
	p.outlast(p.h.Unit)
	if r := p.do(p.a, other); !r.Since.After(was.Since) {
		p.Fatalf("nobody asked for so long, and it remembers since %v, as before", r.Since)
	}
}

func markTouchesNothing(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", t))
	p.expect(node.Granted, p.b, p.mark(node.OpRemember, "monday"))
	p.heldBy("one")
	p.fence(t)
	p.expect(node.Granted, p.a, p.release("one", t))
	p.expect(node.Granted, p.a, p.mark(node.OpRecall, "monday"))
	p.expect(node.Granted, p.a, p.breakUp(t+1))
	p.expect(node.Granted, p.a, p.mark(node.OpRecall, "monday"))
	p.free()
}

func marksAreShown(p *probe) {
	if l := p.look(p.name); len(l.Marks) > 0 || !l.Since.IsZero() {
		p.Errorf("before the first mark it shows %v, remembered since %v", l.Marks, l.Since)
	}
	p.expect(node.Absent, p.a, p.mark(node.OpRecall, "asked for"))
	first := p.do(p.a, p.mark(node.OpRemember, "second"))
	p.expect(node.Granted, p.a, withRetention(p.mark(node.OpRemember, "third \x00 {}"), retention-time.Minute))
	p.expect(node.Granted, p.a, withRetention(p.mark(node.OpRemember, "first"), retention+time.Minute))
	p.expect(node.Granted, p.a, withRetention(p.mark(node.OpRemember, "brief"), p.h.Unit))
	p.expect(node.Granted, p.a, withName(p.mark(node.OpRemember, "other"), p.name+"/other"))
	p.outlast(p.h.Unit)
	l := p.look(p.name)
	if len(l.Marks) != 3 || l.Marks[0].Occurrence != "first" || l.Marks[1].Occurrence != "second" || l.Marks[2].Occurrence != "third \x00 {}" {
		p.Fatalf("it shows the marks %q", l.Marks)
	}
	if off := l.Marks[1].Until.Sub(first.Now.Add(retention)); off.Abs() > p.h.Tolerance {
		p.Errorf("it shows that a mark is forgotten %v too late", off)
	}
	if !l.Since.Equal(first.Since) || l.Reply.Status != node.Absent {
		p.Errorf("it shows %v, remembered since %v, want since %v", l.Reply.Status, l.Since, first.Since)
	}
	// They are neither locks nor listed.
	if all := p.list(p.name); len(all) > 0 {
		p.Errorf("listed are %v", all)
	}
	for i := range node.MaxMarks {
		p.expect(node.Granted, p.a, p.mark(node.OpRemember, fmt.Sprint("number ", i)))
	}
	if l := p.look(p.name); len(l.Marks) != node.MaxMarks || l.Marks[0].Occurrence != "first" {
		p.Errorf("of more than %d marks it shows %d, and first %q", node.MaxMarks, len(l.Marks), l.Marks[:min(len(l.Marks), 1)])
	}
	p.expect(node.Granted, p.a, p.acquire("one", p.token(0)))
	if l := p.list(p.name)[p.name]; l.Reply.Value != "one" || len(l.Marks) > 0 || !l.Since.IsZero() {
		p.Errorf("listed is %+v, want its holder and no marks", l)
	}
}

func badOccurrences(p *probe) {
	for _, op := range []node.Op{node.OpRemember, node.OpRecall} {
		p.refused(p.context(), p.mark(op, ""))
		p.refused(p.context(), p.mark(op, strings.Repeat("o", node.MaxOccurrence+1)))
	}
}
