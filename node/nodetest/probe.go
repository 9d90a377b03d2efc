package nodetest

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redlatch/redlatch/node"
)

const (
	// window is so wide that a slow machine does not push a token out of it.
	// outside is so far away that it is outside on every machine.
	window  = 10 * time.Second
	outside = 20 * time.Second

	// retention is longer than any claim takes.
	retention = time.Hour

	// callLimit ends a call on a store that hangs.
	callLimit = time.Minute
)

// probe is what a claim works with: two nodes of one store, and a name of its
// own.
type probe struct {
	reporter
	h    Harness
	a, b node.Node
	name string
	late *lateness       // nil if the test controls the clock
	used map[string]bool // the names of all requests, if the nodes observe
	// homes are the nodes that have the places of waiters, if each has its own.
	homes map[holder]node.Node

	// tolerance is how late the store may notice that a time is over.
	tolerance time.Duration
}

func uniqueName(what string) string { return "nodetest/" + what + "/" + rand.Text() }

// long is a time to live that does not end while a claim is checked.
func (p *probe) long() time.Duration { return 100 * p.h.Unit }

// pass lets time pass.
func (p *probe) pass(d time.Duration) {
	for name := range p.used {
		for _, n := range []node.Node{p.a, p.b} {
			if n != nil {
				p.do(n, withName(p.inspect(), name))
			}
		}
	}
	p.late.passes(d)
	if p.h.Advance != nil {
		p.h.Advance(d)
		return
	}
	time.Sleep(d)
}

// outlast lets so much time pass that what lives for d has expired.
func (p *probe) outlast(d time.Duration) { p.pass(d + p.tolerance) }

func (p *probe) close(n *node.Node) {
	p.Helper()
	if *n == nil {
		return
	}
	if err := (*n).Close(); err != nil {
		p.Errorf("close of %v: %v", *n, err)
	}
	*n = nil
}

// do executes a request that must not fail.
func (p *probe) do(n node.Node, req node.Request) node.Reply {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	if who := (holder{req.Name, req.Value}); p.h.Places {
		if home := p.homes[who]; home != nil {
			n = home
		} else if req.Wait {
			p.homes[who] = n
		}
	}
	p.late.asks()
	if p.h.Observes && req.Name != "" {
		p.used[req.Name] = true
	}
	reply, err := n.Do(ctx, req)
	for errors.Is(err, node.ErrUnsent) && ctx.Err() == nil && p.linger() { // such as while etcd elects
		reply, err = n.Do(ctx, req)
	}
	if err != nil {
		p.Fatalf("%v by %q failed: %v", req.Op, req.Value, err)
	}
	if reply.Now.IsZero() && (req.Op != node.OpRelease || reply.Status != node.Granted) {
		p.Errorf("%v by %q: the reply has no Now", req.Op, req.Value)
	}
	p.late.answered(req, reply)
	return reply
}

// context returns a context that ends before a store that hangs.
func (p *probe) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	p.Cleanup(cancel)
	return ctx
}

// expect executes requests, one after the other, and ends the claim unless the
// status of each is the one wanted. It returns the last reply.
func (p *probe) expect(want node.Status, n node.Node, reqs ...node.Request) (reply node.Reply) {
	p.Helper()
	for _, req := range reqs {
		if reply = p.do(n, req); reply.Status != want {
			p.Fatalf("%v by %q with token %d: answered %q (holder %q, fence %d), want %q",
				req.Op, req.Value, uint64(req.Token), reply.Status, reply.Value, uint64(reply.Fence), want)
		}
	}
	return reply
}

// expectHeld executes a request that another holder refuses.
func (p *probe) expectHeld(by string, n node.Node, req node.Request) node.Reply {
	p.Helper()
	reply := p.expect(node.Held, n, req)
	if reply.Value != by {
		p.Errorf("%v by %q: the holder is said to be %q, want %q", req.Op, req.Value, reply.Value, by)
	}
	return reply
}

// take acquires the name for a value, and returns its token.
func (p *probe) take(value string) node.Token {
	p.Helper()
	token := p.token(0)
	p.expect(node.Granted, p.a, p.acquire(value, token))
	return token
}

// takeAndRelease acquires the name for a value and releases it.
func (p *probe) takeAndRelease(n node.Node, value string, token node.Token) {
	p.Helper()
	p.expect(node.Granted, n, p.acquire(value, token), p.release(value, token))
}

// The requests below are for the claim's name, with times that do not matter.

func (p *probe) acquire(value string, token node.Token) node.Request {
	return p.request(node.OpAcquire, value, token)
}

func (p *probe) extend(value string, token node.Token) node.Request {
	return p.request(node.OpExtend, value, token)
}

func (p *probe) release(value string, token node.Token) node.Request {
	return p.request(node.OpRelease, value, token)
}

func (p *probe) repair(value string, token node.Token) node.Request {
	return p.request(node.OpRepair, value, token)
}

func (p *probe) breakUp(token node.Token) node.Request {
	return p.request(node.OpBreak, "", token)
}

func (p *probe) inspect() node.Request { return p.request(node.OpInspect, "", 0) }

func (p *probe) request(op node.Op, value string, token node.Token) node.Request {
	return node.Request{
		Op:      op,
		Name:    p.name,
		Value:   value,
		TTL:     p.long(),
		Fencing: node.Fencing{Token: token, Window: window, Retention: retention},
	}
}

func withTTL(req node.Request, ttl time.Duration) node.Request {
	req.TTL = ttl
	return req
}

func withName(req node.Request, name string) node.Request {
	req.Name = name
	return req
}

func withWindow(req node.Request, window time.Duration) node.Request {
	req.Window = window
	return req
}

func withRetention(req node.Request, retention time.Duration) node.Request {
	req.Retention = retention
	return req
}

// token returns the token for a moment that differs by off from the node's
// clock.
func (p *probe) token(off time.Duration) node.Token {
	p.Helper()
	defer p.late.token()
	return node.Token(p.do(p.a, p.inspect()).Now.Add(off).UnixMicro())
}

// heldBy checks that the name is held, as both nodes see it.
func (p *probe) heldBy(value string) node.Reply {
	p.Helper()
	p.expect(node.Held, p.b, p.inspect())
	return p.expectHeld(value, p.a, p.inspect())
}

// free checks that the name is free, as both nodes see it.
func (p *probe) free() node.Reply {
	p.Helper()
	p.expect(node.Absent, p.b, p.inspect())
	return p.expect(node.Absent, p.a, p.inspect())
}

// fence checks the fence, as both nodes see it.
func (p *probe) fence(want node.Token) {
	p.Helper()
	for _, n := range []node.Node{p.a, p.b} {
		p.wantFence(p.do(n, p.inspect()), want)
	}
}

// left checks how long a reply says that there is left.
func (p *probe) left(reply node.Reply, above, most time.Duration) {
	p.Helper()
	if reply.Left <= above || reply.Left > most {
		p.Errorf("the time left is said to be %v (%v), want more than %v and at most %v", reply.Left, reply.Status, above, most)
	}
}

// first checks that the name has so many holders, and which is named.
func (p *probe) first(of int, value string, share node.Share, token node.Token) {
	p.Helper()
	if r := p.holders(of); r.Value != value || r.Share != share || r.HolderToken != token {
		p.Fatalf("held by %q in %v with %d, want %q in %v with %d", r.Value, r.Share, uint64(r.HolderToken), value, share, uint64(token))
	}
}

func (p *probe) wantFence(reply node.Reply, want node.Token) {
	p.Helper()
	if reply.Fence != want {
		p.Fatalf("the reply (%v) has the fence %d, want %d", reply.Status, uint64(reply.Fence), uint64(want))
	}
}

// same reports whether two nodes mean the same time. Without a clock that both read,
// each counts from when it first saw that, which a busy machine delays.
func (p *probe) same(one, other time.Time) bool {
	return one.Equal(other) || p.h.Observes && one.Sub(other).Abs() <= 50*p.tolerance
}

// begun returns when a memory began, which the first node reported, as the second
// one says it.
func (p *probe) begun(m node.RecordsReply) time.Time {
	p.Helper()
	if !p.h.Observes {
		return m.Begun
	}
	return p.memory(p.b, p.record(node.OpCheck, "one")).Begun
}
