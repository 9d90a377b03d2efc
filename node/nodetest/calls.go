package nodetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redlatch/redlatch/node"
)

// callClaims are about how a node is called.
var callClaims = []claim{
	{"one of many at once is granted", func(p *probe) {
		ctx := p.context()
		for round := range 5 {
			token := p.token(0) + node.Token(round)
			caller := func(i int) string { return fmt.Sprintf("caller %d of round %d", i, round) }
			var replies [16]node.Reply
			var errs [16]error
			var done sync.WaitGroup
			for i := range replies {
				n := []node.Node{p.a, p.b}[i%2]
				done.Go(func() { replies[i], errs[i] = n.Do(ctx, p.acquire(caller(i), token)) })
			}
			done.Wait()
			winner := slices.IndexFunc(replies[:], func(r node.Reply) bool { return r.Status == node.Granted })
			if err := errors.Join(errs[:]...); winner < 0 || err != nil {
				p.Fatalf("nobody was granted a free name: %v", err)
			}
			for i, r := range replies {
				if i != winner && (r.Status != node.Held || r.Value != caller(winner)) {
					p.Errorf("%s was answered %q by %q, want %q by %s", caller(i), r.Status, r.Value, node.Held, caller(winner))
				}
			}
			p.expect(node.Granted, p.a, p.release(caller(winner), token))
		}
	}},
	{"an unknown mode is an error without effect", func(p *probe) {
		req := p.acquire("one", p.token(0))
		req.Mode = 200
		p.refused(context.Background(), req)
	}},
	{"an unknown operation is an error without effect", func(p *probe) {
		for _, op := range []node.Op{0, 200} {
			req := p.acquire("one", p.token(0))
			req.Op = op
			p.refused(context.Background(), req)
		}
	}},
	{"a context that has ended is an error without effect", func(p *probe) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := p.refused(ctx, p.acquire("one", p.token(0)))
		if !errors.Is(err, node.ErrUnsent) {
			p.Errorf("the error does not say that nothing was sent: %v", err)
		}
		if !errors.Is(err, context.Canceled) {
			p.Errorf("the error does not say that the context ended: %v", err)
		}

		p.expect(node.Granted, p.a, p.acquire("one", 0))
		if _, err := p.a.Do(ctx, p.release("one", 0)); !errors.Is(err, node.ErrUnsent) {
			p.Errorf("release on a context that has ended: %v", err)
		}
		p.heldBy("one")
	}},
}

// refused checks that a request on a free name fails and leaves no trace.
func (p *probe) refused(ctx context.Context, req node.Request) error {
	p.Helper()
	reply, err := p.a.Do(ctx, req)
	if err == nil {
		p.Errorf("the node answered %q, want an error", reply.Status)
	}
	p.wantFence(p.free(), 0)
	return err
}
