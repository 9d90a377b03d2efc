package nodetest

import (
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/node"
)

// nameClaims are about names and values as texts.
var nameClaims = []claim{
	{"names are independent, however odd", func(p *probe) {
		long := strings.Repeat("n", 511)
		names := append(oddTexts, long+"1", long+"2")
		token := p.token(0)
		for i, n := range names {
			// The claim's own name comes last, so that the store can see a hash
			// tag. The whole stays within 512 bytes.
			if len(n) < 400 {
				names[i] = n + "|" + p.name
			} else {
				names[i] = p.name + n[len(p.name):]
			}
			req := withName(p.acquire(fmt.Sprint("holder ", i), token+node.Token(i)), names[i])
			p.expect(node.Granted, p.a, req)
		}
		listed := p.list("")
		for i, n := range names {
			reply := p.expect(node.Held, p.b, withName(p.inspect(), n))
			if want := fmt.Sprint("holder ", i); reply.Value != want || listed[n].Reply.Value != want {
				p.Errorf("%q is held by %q, and listed as held by %q, want %q", n, reply.Value, listed[n].Reply.Value, want)
			}
			if want := token + node.Token(i); reply.Fence != want {
				p.Errorf("%q has the fence %d, want %d", n, uint64(reply.Fence), uint64(want))
			}
		}
		for i, n := range names {
			p.expect(node.Granted, p.b, withName(p.release(fmt.Sprint("holder ", i), 0), n))
			if i+1 < len(names) {
				p.expect(node.Held, p.a, withName(p.inspect(), names[i+1]))
			}
		}
	}},
	{"values are compared whole and exactly", func(p *probe) {
		const value = "Value of one owner/host/123"
		p.expect(node.Granted, p.a, p.acquire(value, 0))
		for _, other := range []string{
			value[:len(value)-1], value[:8], value + "4", value + " ", " " + value, value + "\x00",
			strings.ToLower(value), strings.ToUpper(value), "%", "*", strings.Repeat("_", len(value)),
		} {
			for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
				if reply := p.do(p.b, p.request(op, other, 0)); reply.Status != node.Held {
					p.Errorf("%v by %q answered %q where %q has the name", op, other, reply.Status, value)
				}
			}
			p.heldBy(value)
		}
	}},
	{"values come back byte for byte", func(p *probe) {
		for _, value := range append(oddTexts, strings.Repeat("v", 512)) {
			p.expect(node.Granted, p.a, p.acquire(value, 0))
			p.heldBy(value)
			p.expect(node.Granted, p.b, p.extend(value, 0), p.release(value, 0))
		}
	}},
}

// oddTexts contain what a store may interpret: quotes, wildcards, separators,
// hash tags, bytes that are no text.
var oddTexts = []string{
	"x", "X", "x ", " x", "x\n", "x\x00", "x\x00y",
	"{}x", "a}b", "{a}b", "{a", "a{b}c{d}", "{{a}}",
	"x'; DROP TABLE lock; --", `x"y`, "x`y", `x\y`, "100%", "%s%d%n", "_", "%", "x?y*[z]",
	"x:fence", "x:queue", "../x", "a/b", "a//b", "redlatch", "0", "-1", "null",
	"ключ", "鍵", "é", "e\u0301", "\xff", "\xfe", "🔒",
}
