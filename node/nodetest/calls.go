package nodetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redlatch/redlatch/node"
)

// callClaims are about how a node is called.
var callClaims = []claim{
	{"one of many at once is granted", func(p *probe) {
		const callers, rounds = 16, 5
		type answer struct {
			value string
			reply node.Reply
			err   error
		}
		for round := range rounds {
			ctx, cancel := context.WithTimeout(context.Background(), callLimit)
			token := p.token(0) + node.Token(round)
			answers := make([]answer, callers)
			start := make(chan struct{})
			var done sync.WaitGroup
			for i := range callers {
				n := p.a
				if i%2 == 1 {
					n = p.b
				}
				done.Go(func() {
					value := fmt.Sprintf("caller %d of round %d", i, round)
					<-start
					reply, err := n.Do(ctx, p.acquire(value, token))
					answers[i] = answer{value, reply, err}
				})
			}
			close(start)
			done.Wait()
			cancel()

			var winner string
			for _, a := range answers {
				switch {
				case a.err != nil:
					p.Fatalf("%s: %v", a.value, a.err)
				case a.reply.Status == node.Granted && winner != "":
					p.Fatalf("both %s and %s were granted", winner, a.value)
				case a.reply.Status == node.Granted:
					winner = a.value
				}
			}
			if winner == "" {
				p.Fatalf("nobody was granted a free name")
			}
			for _, a := range answers {
				if a.value != winner && (a.reply.Status != node.Held || a.reply.Value != winner) {
					p.Errorf("%s was answered %q by %q, want %q by %q",
						a.value, a.reply.Status, a.reply.Value, node.Held, winner)
				}
			}
			p.expect(node.Granted, p.a, p.release(winner, token))
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
