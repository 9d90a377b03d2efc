package goredis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// pool sends commands over a client's connections. On a connection of go-redis
// a request waits for the answer to the one before it, so the thousand leases
// of a program would wait for each other on a few connections. Here the
// commands that arrive while every connection is in use are sent together over
// the next free one, in one round trip.
type pool struct {
	client      goredis.UniversalClient
	connections int // 0 for a client that the program made; nothing is batched then

	mu      sync.Mutex
	inUse   int
	waiting []*sending
}

// sending is a command that a caller waits for.
type sending struct {
	ctx  context.Context
	cmd  *goredis.Cmd
	done chan struct{}
}

// process sends the command, and returns its error, or that of ctx if it ends
// first. The command must not be used after that.
func (p *pool) process(ctx context.Context, cmd *goredis.Cmd) error {
	if p.connections == 0 {
		return p.client.Process(ctx, onlyOnce{cmd})
	}
	p.mu.Lock()
	if p.inUse < p.connections {
		p.inUse++
		p.mu.Unlock()
		defer p.free()
		return p.client.Process(ctx, onlyOnce{cmd})
	}
	s := &sending{ctx: ctx, cmd: cmd, done: make(chan struct{})}
	p.waiting = append(p.waiting, s)
	p.mu.Unlock()
	select {
	case <-s.done:
		return cmd.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// free hands a connection to the commands that wait for one.
func (p *pool) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	batch := p.waiting
	p.waiting = nil
	if len(batch) == 0 {
		p.inUse--
		return
	}
	go func() {
		defer p.free()
		p.exec(batch)
	}()
}

// exec sends a batch and waits for its answers until the last of its callers
// has given up.
func (p *pool) exec(batch []*sending) {
	var latest time.Time
	bounded := true
	pipeline := p.client.Pipeline()
	for _, s := range batch {
		deadline, ok := s.ctx.Deadline()
		bounded = bounded && ok
		if deadline.After(latest) {
			latest = deadline
		}
		if s.ctx.Err() == nil { // else nobody waits for it any longer
			pipeline.Process(s.ctx, s.cmd)
		}
	}
	ctx := context.Background()
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, latest)
		defer cancel()
	}
	if pipeline.Len() > 0 {
		pipeline.Exec(ctx) // each command has its own error
	}
	for _, s := range batch {
		close(s.done)
	}
}
