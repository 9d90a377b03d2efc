package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// link is between a client and a node in memory: it can be slow, cut off or
// frozen.
type link struct {
	*memory.Node
	mu       sync.Mutex
	out      time.Duration // how long a request is in flight
	frozen   chan struct{} // requests wait here until it is closed
	refusing error         // requests fail with this, without any effect
	hook     func(req node.Request)
	requests map[node.Op]int
}

func newLinks(t testing.TB, n int) ([]*link, []redlatch.Node) {
	links := make([]*link, n)
	nodes := make([]redlatch.Node, n)
	for i := range links {
		links[i] = &link{Node: memory.New(&memory.Options{Name: strconv.Itoa(i + 1)}), requests: map[node.Op]int{}}
		nodes[i] = links[i]
		t.Cleanup(links[i].thaw)
	}
	return links, nodes
}

func (l *link) set(change func(l *link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *link) freeze() { l.set(func(l *link) { l.frozen = make(chan struct{}) }) }
func (l *link) thaw() {
	l.set(func(l *link) {
		if l.frozen != nil {
			close(l.frozen)
			l.frozen = nil
		}
	})
}

// cut makes the link lose everything, like a network partition.
func (l *link) cut() { l.set(func(l *link) { l.refusing = errors.New("no route to host") }) }

func (l *link) count(op node.Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[op]
}

func (l *link) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	l.mu.Lock()
	l.requests[req.Op]++
	out, frozen, hook := l.out, l.frozen, l.hook
	l.mu.Unlock()
	if hook != nil {
		hook(req)
	}
	l.mu.Lock()
	refusing := l.refusing
	l.mu.Unlock()
	if refusing != nil {
		return node.Reply{}, fmt.Errorf("%w (%w)", refusing, node.ErrUnsent)
	}
	if out > 0 {
		select {
		case <-time.After(out):
		case <-ctx.Done():
			return node.Reply{}, ctx.Err()
		}
	}
	if frozen != nil {
		select {
		case <-frozen:
		case <-ctx.Done():
			return node.Reply{}, ctx.Err()
		}
	}
	return l.Node.Do(ctx, req)
}

// holder returns the value that has the name on the node.
func (l *link) holder(t *testing.T, name string) string {
	t.Helper()
	reply, err := l.Node.Do(context.Background(), node.Request{Op: node.OpInspect, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Value
}

// take grants the name to another client's value.
func (l *link) take(t *testing.T, name, value string, ttl time.Duration) {
	t.Helper()
	reply, err := l.Node.Do(context.Background(), node.Request{Op: node.OpAcquire, Name: name, Value: value, TTL: ttl})
	if err != nil || reply.Status != node.Granted {
		t.Fatalf("taking %q for %q: %v, %v", name, value, reply.Status, err)
	}
}

// wantFree fails if any node still has the name.
func wantFree(t *testing.T, links []*link, name string) {
	t.Helper()
	for _, l := range links {
		if v := l.holder(t, name); v != "" {
			t.Errorf("node %v still has %q for %q", l, name, v)
		}
	}
}

// newClient returns a client that is closed with the test.
func newClient(t testing.TB, nodes []redlatch.Node, opts redlatch.Options) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(nodes, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustLock(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	l, err := c.Lock(context.Background(), name, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantErr fails unless err is all of targets.
func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("got error %v, want one that is %v", err, target)
		}
	}
}

// offClock is a wall clock that is wrong by a fixed amount.
type offClock struct {
	start time.Time
	by    time.Duration
}

func (c offClock) Now() time.Time        { return time.Now().Add(c.by) }
func (c offClock) Uptime() time.Duration { return time.Since(c.start) }
