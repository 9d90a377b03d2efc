// Package locktest has clients whose nodes are in memory, behind links that do to
// their messages what a network can do, for tests of the API and of the runner.
package locktest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
)

// Link is between a client and a node in memory. It does to their messages what
// a network can do.
type Link struct {
	*memory.Node
	mu           sync.Mutex
	Out          time.Duration             // how long a request is in flight
	Back         time.Duration             // how long a reply is in flight
	Lag          map[node.Op]time.Duration // how much longer some requests are in flight
	Deaf         bool                      // the driver does not return when its context ends
	Frozen       chan struct{}             // requests wait here until it is closed
	LoseReplies  int                       // number of replies that are still to be lost
	Refuse       error                     // requests fail with this, without any effect
	LoseWakes    bool                      // notifications are lost
	WakeLag      time.Duration             // how much longer a notification is in flight
	IgnoreYields bool                      // yields are not executed
	Listener     func(node.Wake)
	Hook         func(req node.Request)
	requests     map[node.Op]int
	underway     atomic.Int32 // requests in flight
}

// WithClock returns options of a client that uses the clock.
func WithClock(opts redlatch.Options, clock runner.Clock) redlatch.Options {
	clientaccess.SetClock(&opts, clock)
	return opts
}

// Links are some links of one client. Its methods do the same to each.
type Links []*Link

func (ls Links) Set(change func(l *Link)) {
	for _, l := range ls {
		l.Set(change)
	}
}

func (ls Links) Freeze() { ls.each((*Link).Freeze) }
func (ls Links) Thaw()   { ls.each((*Link).Thaw) }
func (ls Links) Cut()    { ls.each((*Link).Cut) }
func (ls Links) Mend()   { ls.each((*Link).Mend) }

func (ls Links) each(do func(l *Link)) {
	for _, l := range ls {
		do(l)
	}
}

// Take grants the name on each node to another client's value.
func (ls Links) Take(t *testing.T, name, value string, ttl time.Duration) {
	t.Helper()
	ls.each(func(l *Link) { l.Take(t, name, value, ttl) })
}

// Drop makes each node forget the name.
func (ls Links) Drop(name string) { ls.each(func(l *Link) { l.Node.Drop(name) }) }

// New returns a client of n nodes, with its links.
func New(t testing.TB, n int, opts redlatch.Options) (Links, *redlatch.Client) {
	t.Helper()
	links, nodes := NewLinks(t, n)
	return links, NewClient(t, nodes, opts)
}

func NewLinks(t testing.TB, n int) (Links, []redlatch.Node) {
	links := make(Links, n)
	nodes := make([]redlatch.Node, n)
	for i := range links {
		links[i] = NewLink(t, memory.New(&memory.Options{Name: strconv.Itoa(i + 1)}))
		nodes[i] = links[i]
	}
	return links, nodes
}

func NewLink(t testing.TB, n *memory.Node) *Link {
	l := &Link{Node: n, requests: map[node.Op]int{}}
	t.Cleanup(func() {
		l.Thaw()
		for l.underway.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Millisecond) // a caller that waits for the last answer returns
	})
	return l
}

func (l *Link) Set(change func(l *Link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *Link) Freeze() { l.Set(func(l *Link) { l.Frozen = make(chan struct{}) }) }
func (l *Link) Thaw() {
	l.Set(func(l *Link) {
		if l.Frozen != nil {
			close(l.Frozen)
			l.Frozen = nil
		}
	})
}

func (l *Link) Count(op node.Op) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[op]
}

var ErrLostReply = errors.New("connection reset by peer")

// Prompt has callers call a link by themselves, if it is the only node.
func (l *Link) Prompt() bool { l.mu.Lock(); defer l.mu.Unlock(); return !l.Deaf }

// Do sends the request on a goroutine of its own: like a real server, the node
// executes it even if the caller has gone.
func (l *Link) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	return carry(ctx, l, req, func(ctx context.Context) (node.Reply, error) {
		l.mu.Lock()
		keeps := l.IgnoreYields && req.Op == node.OpYield
		l.mu.Unlock()
		if keeps {
			return node.Reply{Status: node.Granted}, nil
		}
		return l.Node.Do(ctx, req)
	})
}

// Records is the same for a request about records.
func (l *Link) Records(ctx context.Context, req node.RecordsRequest) (node.RecordsReply, error) {
	return carry(ctx, l, node.Request{Op: req.Op, Name: req.Name}, func(ctx context.Context) (node.RecordsReply, error) { return l.Node.Records(ctx, req) })
}

// carry sends what is executed, which is or is like a request.
func carry[R any](ctx context.Context, l *Link, req node.Request, execute func(ctx context.Context) (R, error)) (reply R, err error) {
	l.mu.Lock()
	l.requests[req.Op]++
	out, back, deaf, frozen := l.Out+l.Lag[req.Op], l.Back, l.Deaf, l.Frozen
	hook := l.Hook
	lose := l.LoseReplies > 0
	if lose {
		l.LoseReplies--
	}
	l.mu.Unlock()
	if hook != nil {
		hook(req)
	}
	l.mu.Lock()
	refusing := l.Refuse
	l.mu.Unlock()
	if refusing != nil {
		return reply, fmt.Errorf("%w (%w)", refusing, node.ErrUnsent)
	}
	if out == 0 && back == 0 && frozen == nil && !lose {
		return execute(ctx)
	}
	type answer struct {
		reply R
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
		reply, err := execute(context.Background())
		time.Sleep(back)
		if lose {
			err = ErrLostReply
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
		return reply, ctx.Err()
	}
}

// Listen passes notifications on. A link that is cut loses them.
func (l *Link) Listen(f func(node.Wake)) (stop func()) {
	l.Set(func(l *Link) { l.Listener = f })
	return l.Node.Listen(func(w node.Wake) {
		l.mu.Lock()
		lost := l.LoseWakes || l.Refuse != nil || l.Frozen != nil
		lag := l.Back + l.WakeLag
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

// Cut makes the link lose everything, like a network partition.
func (l *Link) Cut() { l.Set(func(l *Link) { l.Refuse = ErrUnreachable }) }

// Mend ends what Cut, or another refusal, began.
func (l *Link) Mend() { l.Set(func(l *Link) { l.Refuse = nil }) }

var ErrUnreachable = errors.New("no route to host")

// Host is a client with links of its own to nodes that it shares with others.
type Host struct {
	*redlatch.Client
	Links Links
}

// NewHosts returns clients of the same n nodes, each with its own network.
func NewHosts(t testing.TB, hosts, n int, opts redlatch.Options) []*Host {
	nodes := make([]*memory.Node, n)
	for i := range nodes {
		nodes[i] = memory.New(&memory.Options{Name: strconv.Itoa(i + 1)})
	}
	all := make([]*Host, hosts)
	for h := range all {
		all[h] = &Host{}
		list := make([]redlatch.Node, n)
		for i, at := range nodes {
			l := NewLink(t, at)
			all[h].Links = append(all[h].Links, l)
			list[i] = l
		}
		all[h].Client = NewClient(t, list, opts)
	}
	return all
}

// Requests returns how many requests the hosts have sent.
func Requests(hosts ...*Host) (n int) {
	for _, h := range hosts {
		for _, l := range h.Links {
			for _, op := range []node.Op{node.OpAcquire, node.OpRelease, node.OpYield} {
				n += l.Count(op)
			}
		}
	}
	return n
}

// Holder returns the value that has the name on the node.
func (l *Link) Holder(t *testing.T, name string) string {
	t.Helper()
	reply, err := l.Node.Do(context.Background(), node.Request{Op: node.OpInspect, Name: name})
	check.Must(t, err)
	return reply.Value
}

// Take grants the name to another client's value.
func (l *Link) Take(t *testing.T, name, value string, ttl time.Duration) {
	t.Helper()
	reply, err := l.Node.Do(context.Background(), node.Request{Op: node.OpAcquire, Name: name, Value: value, TTL: ttl})
	if err != nil || reply.Status != node.Granted {
		t.Fatalf("taking %q for %q: %v, %v", name, value, reply.Status, err)
	}
}

// WantFree fails if any node still has the name.
func WantFree(t *testing.T, links []*Link, name string) {
	t.Helper()
	for _, l := range links {
		if v := l.Holder(t, name); v != "" {
			t.Errorf("node %v still has %q for %q", l, name, v)
		}
	}
}

// NewClient returns a client that is closed with the test.
func NewClient(t testing.TB, nodes []redlatch.Node, opts redlatch.Options) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(nodes, &opts)
	check.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func MustLock(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	l, err := c.Lock(context.Background(), name, &opts)
	check.Must(t, err)
	return l
}

// WantErr fails unless err is all of targets.
func WantErr(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("got error %v, want one that is %v", err, target)
		}
	}
}

// Release frees the name on one node, for any holder.
func Release(t *testing.T, l *Link, name string) {
	t.Helper()
	_, err := l.Node.Do(t.Context(), node.Request{Op: node.OpRelease, Name: name, Value: l.Holder(t, name)})
	check.Must(t, err)
}

// Waiters returns how many wait for the name on the node.
func (l *Link) Waiters(t *testing.T, name string) int {
	t.Helper()
	look, err := l.Node.Look(context.Background(), name)
	check.Must(t, err)
	return look.Waiting
}

// WantConfigError fails unless err names the field, the value and what is
// allowed.
func WantConfigError(t *testing.T, err error, field string) {
	t.Helper()
	var bad *redlatch.ConfigError
	if !errors.As(err, &bad) || !errors.Is(err, redlatch.ErrConfig) {
		t.Fatalf("got %v, want a ConfigError", err)
	}
	said := strings.Contains(err.Error(), field) && strings.Contains(err.Error(), bad.Bound)
	if bad.Field != field || bad.Bound == "" || !said && (bad.Problem == "" || !strings.Contains(err.Error(), bad.Problem)) {
		t.Errorf("got %q, want the field %s and its bound named", err, field)
	}
}

// Run is a subtest in virtual time.
func Run(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// Within returns a context that ends after d.
func Within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// WantTook fails unless the time since start is between least and most.
func WantTook(t testing.TB, start time.Time, least, most time.Duration) {
	t.Helper()
	if took := time.Since(start); took < least || took > most {
		t.Errorf("it took %v, want %v to %v", took, least, most)
	}
}

// Rounds is an observer that is notified of the ends of rounds.
type Rounds func(observe.RoundEnd)

func (Rounds) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }
func (Rounds) LockEnd(context.Context, observe.LockEnd)                           {}
func (f Rounds) RoundEnd(_ context.Context, e observe.RoundEnd)                   { f(e) }

// Patient is for tests in real time that are not about the node time limit: on
// a busy machine even a node in memory may take a while to answer.
var Patient = redlatch.Options{NodeTimeout: 10 * time.Second}

// WantTakenFor checks that a lock can be acquired after this long, and not much
// earlier.
func WantTakenFor(t *testing.T, c *redlatch.Client, name string, want time.Duration) {
	t.Helper()
	began := time.Now()
	l := MustLock(t, c, name, redlatch.LockOptions{})
	WantTook(t, began, want-time.Millisecond, want+500*time.Millisecond)
	check.Must(t, l.Release(t.Context()))
}
