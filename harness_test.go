package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/memory"
	"github.com/redlatch/redlatch/node"
)

// link is between a client and a node in memory. It does to their messages what
// a network can do.
type link struct {
	*memory.Node
	mu       sync.Mutex
	out      time.Duration // how long a request is in flight
	back     time.Duration // how long a reply is in flight
	lag      time.Duration // how much longer a release is in flight
	mending  time.Duration // how much longer a repair is in flight
	deaf     bool          // the driver does not return when its context ends
	frozen   chan struct{} // requests wait here until it is closed
	dropping int           // number of replies that are still to be lost
	refusing error         // requests fail with this, without any effect
	unwoken  bool          // notifications are lost
	wakeLag  time.Duration // how much longer a notification is in flight
	keeping  bool          // offers are not executed
	listener func(node.Wake)
	hook     func(req node.Request)
	requests map[node.Op]int
	underway atomic.Int32 // requests in flight
}

func newLinks(t testing.TB, n int) ([]*link, []redlatch.Node) {
	links := make([]*link, n)
	nodes := make([]redlatch.Node, n)
	for i := range links {
		links[i] = newLink(t, memory.New(memory.Options{Name: strconv.Itoa(i + 1)}))
		nodes[i] = links[i]
	}
	return links, nodes
}

func newLink(t testing.TB, n *memory.Node) *link {
	l := &link{Node: n, requests: map[node.Op]int{}}
	t.Cleanup(func() {
		l.thaw()
		for l.underway.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Millisecond) // a caller that waits for the last answer returns
	})
	return l
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

func (l *link) count(op node.Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[op]
}

var errLostReply = errors.New("connection reset by peer")

// Do sends the request on a goroutine of its own: like a real server, the node
// executes it even if the caller has gone.
func (l *link) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	l.mu.Lock()
	l.requests[req.Op]++
	out, back, deaf, frozen := l.out, l.back, l.deaf, l.frozen
	if req.Op == node.OpRelease {
		out += l.lag
	}
	if req.Op == node.OpRepair {
		out += l.mending
	}
	hook := l.hook
	lose := l.dropping > 0
	if lose {
		l.dropping--
	}
	l.mu.Unlock()
	if hook != nil {
		hook(req)
	}
	l.mu.Lock()
	refusing, keeping := l.refusing, l.keeping
	l.mu.Unlock()
	if keeping && req.Op == node.OpOffer {
		return node.Reply{Status: node.Granted}, nil
	}
	if refusing != nil {
		return node.Reply{}, fmt.Errorf("%w (%w)", refusing, node.ErrUnsent)
	}
	if out == 0 && back == 0 && frozen == nil && !lose {
		return l.Node.Do(ctx, req)
	}
	type answer struct {
		reply node.Reply
		err   error
	}
	answered := make(chan answer, 1)
	l.underway.Add(1)
	go func() {
		defer l.underway.Add(-1)
		time.Sleep(out)
		if frozen != nil {
			<-frozen
		}
		reply, err := l.Node.Do(context.Background(), req)
		time.Sleep(back)
		if lose {
			err = errLostReply
		}
		answered <- answer{reply, err}
	}()
	done := ctx.Done()
	if deaf {
		done = nil
	}
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-done:
		return node.Reply{}, ctx.Err()
	}
}

func (l *link) ReturnsByDeadline() bool { return true }

// Listen passes notifications on. A link that is cut loses them.
func (l *link) Listen(f func(node.Wake)) (stop func()) {
	l.set(func(l *link) { l.listener = f })
	return l.Node.Listen(func(w node.Wake) {
		l.mu.Lock()
		lost := l.unwoken || l.refusing != nil || l.frozen != nil
		lag := l.back + l.wakeLag
		l.mu.Unlock()
		switch {
		case lost:
		case lag == 0:
			f(w)
		default:
			l.underway.Add(1)
			time.AfterFunc(lag, func() {
				defer l.underway.Add(-1)
				f(w)
			})
		}
	})
}

// cut makes the link lose everything, like a network partition.
func (l *link) cut() { l.set(func(l *link) { l.refusing = errUnreachable }) }

var errUnreachable = errors.New("no route to host")

// host is a client with links of its own to nodes that it shares with others.
type host struct {
	*redlatch.Client
	links []*link
}

// newHosts returns clients of the same n nodes, each with its own network.
func newHosts(t testing.TB, hosts, n int, opts redlatch.Options) []*host {
	nodes := make([]*memory.Node, n)
	for i := range nodes {
		nodes[i] = memory.New(memory.Options{Name: strconv.Itoa(i + 1)})
	}
	all := make([]*host, hosts)
	for h := range all {
		all[h] = &host{}
		list := make([]redlatch.Node, n)
		for i, at := range nodes {
			l := newLink(t, at)
			all[h].links = append(all[h].links, l)
			list[i] = l
		}
		all[h].Client = newClient(t, list, opts)
	}
	return all
}

// requests returns how many requests the hosts have sent.
func requests(hosts ...*host) (n int) {
	for _, h := range hosts {
		for _, l := range h.links {
			for _, op := range []node.Op{node.OpAcquire, node.OpRelease, node.OpOffer} {
				n += l.count(op)
			}
		}
	}
	return n
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
	c, err := redlatch.New(nodes, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustLock(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	l, err := c.Lock(context.Background(), name, opts)
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
