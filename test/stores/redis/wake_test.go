//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// The tests of this file have waiters that would sleep for an hour without a
// notification, and a holder whose lease does not expire during that time.
var deaf = redlatch.Options{RetryDelay: time.Hour, Cluster: redlatch.Cluster{MaxTTL: time.Hour}}

// awake are the options of their holder: an attempt that fails on a busy machine
// is repeated.
var awake = redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: time.Hour}}

const ages = 50 * time.Minute

// got is the result of a Lock.
type got struct {
	lease *redlatch.Lease
	err   error
}

// goLock calls Lock in the background.
func goLock(c *redlatch.Client, name string, opts redlatch.LockOptions) <-chan got {
	out := make(chan got, 1)
	go func() {
		l, err := c.Lock(context.Background(), name, &opts)
		out <- got{l, err}
	}()
	return out
}

// mustGet waits for the result of a Lock in the background.
func mustGet(t testing.TB, in <-chan got, within time.Duration) *redlatch.Lease {
	t.Helper()
	select {
	case g := <-in:
		if g.err != nil {
			t.Fatal(g.err)
		}
		return g.lease
	case <-time.After(within):
		t.Fatalf("the lock was to be had, and the waiter did not have it within %v", within)
		return nil
	}
}

func mustLock(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	return mustGet(t, goLock(c, name, opts), patience)
}

// holdOnAll takes a lock and returns when every server has it: until then a
// later client could be first on one of them.
func holdOnAll(t testing.TB, c *redlatch.Client, servers []*servertest.Server, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	// Here, and not with the first lock: if it fails on a busy machine, it is
	// repeated. Otherwise the servers would be quarantined.
	if err := fresh.Declare(context.Background(), c); err != nil && !errors.Is(err, admin.ErrNotFresh) && !errors.Is(err, redlatch.ErrConfig) {
		t.Fatal(err)
	}
	for tries := 1; ; tries++ {
		eventually(t, undone, noKeys(servers)) // the last holder's release may be in flight
		l := mustLock(t, c, name, opts)
		within := patience // an extension repairs a server that lacks it
		if opts.NoKeepAlive {
			within = 300 * time.Millisecond
		}
		var err error
		// On a busy machine it may be lost meanwhile.
		for end := time.Now().Add(within); time.Now().Before(end) && l.Err() == nil; time.Sleep(5 * time.Millisecond) {
			if err = heldOnAll(servers, name)(); err == nil {
				return l
			}
		}
		if tries == 20 || !opts.NoKeepAlive && l.Err() == nil {
			t.Fatal(err)
		}
		l.Release(context.Background())
	}
}

// heldOnAll complains unless one and the same value has the lock everywhere.
func heldOnAll(servers []*servertest.Server, name string) func() error {
	return func() error {
		value := servers[0].Do("GET", name)
		for i, s := range servers {
			if v := s.Do("GET", name); v == "" || v != value {
				return fmt.Errorf("server %d has %q, the first one %q", i, v, value)
			}
		}
		return nil
	}
}

func mustRelease(t testing.TB, l *redlatch.Lease) {
	t.Helper()
	must(t, l.Release(context.Background()))
}

// TestReleaseBeforeTheInboxStandsIsNotMissed has the holder release after the
// waiter was refused and before the server has confirmed its subscription. The
// notification reaches nobody, and the waiter must ask once more when it is
// subscribed.
func TestReleaseBeforeTheInboxStandsIsNotMissed(t *testing.T) {
	t.Parallel()
	for kind := range subscribers {
		for _, n := range []int{1, 3} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				servers := servertest.Redis(t, n)
				holder := newClient(t, open(t, servertest.Addresses(servers)...), awake)
				lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: ages})

				refused, free := make(chan struct{}, n), make(chan struct{})
				taps := make([]*tap, n)
				for i, s := range servers {
					taps[i] = newTap(t, kind, s)
					// The first notification of all is sent before the node
					// learns that it is subscribed.
					taps[i].confirming = func() {
						refused <- struct{}{}
						<-free
					}
				}
				freed := sync.OnceFunc(func() { close(free) })
				t.Cleanup(freed)
				waiter := newClient(t, tapped(servers, taps...), deaf)
				waiting := goLock(waiter, "job", redlatch.LockOptions{TTL: ages})
				for range n {
					select {
					case <-refused:
					case g := <-waiting:
						t.Fatalf("the waiter does not wait any more: %v", g.err)
					case <-time.After(patience):
						t.Fatal("a server has not put the waiter into its queue")
					}
				}
				mustRelease(t, lease)
				freed()
				mustRelease(t, mustGet(t, waiting, patience))
			})
		}
	}
}

// rounds calls a function at the end of each round.
type rounds struct {
	announcerless
	f func()
}

// announcerless is an observer that does nothing.
type announcerless struct{}

func (announcerless) LockStart(ctx context.Context, _ observe.LockStart) context.Context { return ctx }
func (announcerless) LockEnd(context.Context, observe.LockEnd)                           {}

func (r rounds) RoundEnd(context.Context, observe.RoundEnd) { r.f() }

// TestInboxThatStandsBeforeTheRefusalIsTakenInIsNotMissed has the server
// confirm the subscription while the refusal that asked for it is still in
// flight, as on a busy machine: no waiter can be notified yet.
func TestInboxThatStandsBeforeTheRefusalIsTakenInIsNotMissed(t *testing.T) {
	t.Parallel()
	for kind := range subscribers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 1)
			holder := newClient(t, open(t, servers[0].URL()), awake)
			lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: ages})

			stands := make(chan struct{})
			d := newTap(t, kind, servers[0])
			d.confirmed = sync.OnceFunc(func() { close(stands) })
			opts := deaf
			opts.Observer = rounds{f: func() { <-stands }}
			waiter := newClient(t, tapped(servers, d), opts)
			waiting := goLock(waiter, "job", redlatch.LockOptions{TTL: ages})
			<-stands
			eventually(t, patience, func() error {
				select {
				case g := <-waiting:
					t.Fatalf("the waiter got %v, %v", g.lease, g.err)
				default:
				}
				return inLine(servers, "job", 1)()
			})
			mustRelease(t, lease)
			mustRelease(t, mustGet(t, waiting, patience))
		})
	}
}

// TestWaiterKilledAtTheHeadCostsTheOthersNextToNothing closes the connections of the head
// of the queue. A release and a break remove it at once, since the server reports that
// nobody is subscribed, and wake who is behind it. Nobody asks again in this test.
func TestWaiterKilledAtTheHeadCostsTheOthersNextToNothing(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		for _, end := range []node.Op{node.OpRelease, node.OpBreak} {
			server := servertest.Redis(t, 1)[0]
			proxy := servertest.NewProxy(t, server)
			next, head := nodes(server.URL())[0], nodes(proxy.URL())[0]
			defer next.Close()
			defer head.Close()
			wakes := make(chan node.Wake, 10)
			defer head.(node.Waker).Listen(func(node.Wake) {})()
			defer next.(node.Waker).Listen(func(w node.Wake) { wakes <- w })()
			token := redlatch.Token(time.Now().UnixMicro())
			ask := func(n redlatch.Node, op node.Op, value string, above redlatch.Token) node.Reply {
				reply, err := n.Do(context.Background(), node.Request{Op: op, Name: "job", Value: value, Fencing: node.Fencing{Token: token + above, Window: 10 * time.Second, Retention: time.Minute}, TTL: time.Minute,
					Waiting: node.Waiting{Wait: op == node.OpAcquire, Ticket: int64(above)}})
				must(t, err)
				return reply
			}
			ask(next, node.OpAcquire, "holder", 0)
			for i, n := range []redlatch.Node{head, next} {
				eventually(t, patience, func() error {
					if reply := ask(n, node.OpAcquire, []string{"head", "next"}[i], redlatch.Token(i+1)); !reply.Wakes {
						return fmt.Errorf("it is not queued: %+v", reply)
					}
					return nil
				})
			}
			proxy.Close()
			eventually(t, patience, func() error {
				if list := server.Do("CLIENT", "LIST", "TYPE", "pubsub"); strings.Count(list, "sub=1") != 1 {
					return errors.New("want one that listens: " + list)
				}
				return nil
			})
			ask(next, end, "holder", 5)
			if line := server.Do("ZRANGE", queueOf("job"), "0", "-1"); strings.Contains(line, "head") || !strings.Contains(line, "next") {
				t.Fatalf("after %v the queue is %q", end, line)
			}
			for timeout := time.After(20 * time.Second); ; {
				select {
				case w := <-wakes:
					if w.Kind != node.WakeTurn {
						continue
					}
					if w.Value != "next" || w.Fence != token+5 {
						t.Errorf("the wake is %+v", w)
					}
				case <-timeout:
					t.Fatalf("nobody was woken after %v", end)
				}
				break
			}
		}
	})
}
