package runner_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestReleaseIsDoneWhereANodeNeverHadTheLock releases a lock that one node
// frees, one node does not have, and one node does not answer for. The name is
// free on a quorum of nodes, and the next caller gets it.
func TestReleaseIsDoneWhereANodeNeverHadTheLock(t *testing.T) {
	for what, third := range map[string]func(l *locktest.Link){
		"frozen":      func(l *locktest.Link) { l.Frozen = make(chan struct{}) },
		"unreachable": func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable },
	} {
		locktest.Run(t, what, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{})
			other := locktest.NewClient(t, []redlatch.Node{links[0].Node, links[1].Node, links[2].Node}, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
			synctest.Wait()
			links[1].Drop("job")
			links[2].Set(third)
			// The node that has the key answers last.
			links[0].Set(func(l *locktest.Link) { l.Out = 50 * time.Millisecond })
			must(t, l.Release(t.Context()))
			if v := links[0].Holder(t, "job"); v != "" {
				t.Errorf("Release returned before the node that had the key had freed it")
			}
			if _, err := other.TryLock(t.Context(), "job", nil); err != nil {
				t.Errorf("the next caller: %v", err)
			}
		})
	}
}

// TestReleaseDoesNotWaitForANodeThatIsKnownToBeSilent has a suspect node that
// does not answer: the answers of the others are enough.
func TestReleaseDoesNotWaitForANodeThatIsKnownToBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		links[2].Freeze()
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		time.Sleep(time.Second) // node 3 is known to be silent
		links[1].Drop("job")
		start := time.Now()
		must(t, l.Release(t.Context()))
		locktest.WantTook(t, start, 0, 0)
	})
}

// TestReleaseSaysLostThoughNodesAreDown has so many nodes report that the lock
// is not ours that no quorum can have held it at the end, whatever the other
// nodes hold.
func TestReleaseSaysLostThoughNodesAreDown(t *testing.T) {
	for n, without := range map[int]int{3: 2, 4: 2, 5: 3} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, n, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
			synctest.Wait()
			for i, lk := range links {
				if i < without {
					lk.Drop("job")
					lk.Set(func(l *locktest.Link) { l.Out = 50 * time.Millisecond })
				} else {
					lk.Cut()
				}
			}
			locktest.WantErr(t, l.Release(t.Context()), redlatch.ErrLost)
		})
	}
}

// TestReleaseDoesNotOvertakeARequestThatIsBeingSent has the nodes refuse the first
// token. The second one is proposed on the goroutine of a node, which is held up
// before it has asked the fifth node, when the others have granted. The release
// must not be sent to the fifth node before that request.
func TestReleaseDoesNotOvertakeARequestThatIsBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewOrdered(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.MustLock(t, c, "warm", redlatch.LockOptions{}).Release(t.Context())
		synctest.Wait()
		token := node.Token(time.Now().Add(time.Second).UnixMicro())
		for _, l := range links {
			l.Node.Do(t.Context(), node.Request{Op: node.OpRelease, Name: "job", Value: "x", Fencing: node.Fencing{Token: token, Window: time.Minute, Retention: time.Hour}})
		}
		goOn := make(chan struct{})
		var mu sync.Mutex
		var sent []node.Op
		links[4].Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				if req.Op == node.OpAcquire && req.Token > token {
					<-goOn
				}
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, req.Op)
			}
		})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		must(t, l.Release(t.Context()))
		close(goOn)
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if want := []node.Op{node.OpAcquire, node.OpAcquire, node.OpRelease}; !slices.Equal(sent, want) {
			t.Errorf("the fifth node was sent %v, want %v", sent, want)
		}
		if v := links[4].Holder(t, "job"); v != "" {
			t.Errorf("the fifth node still has the lock for %q", v)
		}
	})
}

// TestNextCallerAsksOnceTheReleaseIsSent has a lease with a handle be released, which is
// held up where it is sent.
func TestNextCallerAsksOnceTheReleaseIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewOrdered(t, 1)
		c, leases, asked := locktest.NewClient(t, nodes, redlatch.Options{}), make(chan *redlatch.Lease), make(chan node.Op, 10)
		first := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		for range 2 {
			go func() { leases <- locktest.MustLock(t, c, "job", redlatch.LockOptions{}) }()
			synctest.Wait()
		}
		must(t, first.Release(t.Context()))
		second := <-leases
		second.Handle()
		synctest.Wait()
		links[0].Set(func(l *locktest.Link) {
			l.Hook = func(req node.Request) {
				time.Sleep(map[node.Op]time.Duration{node.OpRelease: time.Millisecond}[req.Op])
				asked <- req.Op
			}
		})
		must(t, second.Release(t.Context()))
		if op := <-asked; op != node.OpRelease {
			t.Errorf("the first request is %v, want the release", op)
		}
		must(t, (<-leases).Release(t.Context()))
	})
}

// lending is a node whose answers a caller reads. It notes what happens.
type lending struct {
	*locktest.Ordered
	log []string
}

func (l *lending) Start(req node.Request, limit time.Duration, done func(node.Reply, error)) {
	l.log = append(l.log, "sent")
	l.Ordered.Start(req, limit, done)
}

func (l *lending) Lend() callerreads.Loan {
	l.log = append(l.log, "lent")
	return func(done <-chan struct{}, limit time.Duration) { l.log = append(l.log, "read") }
}

func TestCallersReadTheirAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, _ := locktest.NewOrdered(t, 1)
		n := &lending{Ordered: links[0]}
		c := locktest.NewClient(t, []redlatch.Node{n}, locktest.Patient)
		locktest.MustLock(t, c, "first", redlatch.LockOptions{}).Release(t.Context()) // identifies the node
		n.log = nil
		locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())
		if got := strings.Join(n.log, " "); got != "lent sent read lent sent read" {
			t.Errorf("the answers were %s", got)
		}
	})
}
