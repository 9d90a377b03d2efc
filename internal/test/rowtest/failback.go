//go:build unix

package rowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// failback has long locks: one outlives that a server takes another one's place.
var failback = redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 10 * time.Second, TokenWindow: time.Second}, NodeTimeout: 2 * time.Second, AssumeFresh: true}

// failedBack has a replica take the place of a single server, a lock be acquired
// there, and the former primary come back as it was. A client that has seen the
// replica marks it again, and from then on nobody is granted the lock in a whole
// quarantine.
func failedBack(t *testing.T, h Harness) {
	primary := h.Start(t)
	proxy := servertest.NewProxy(t, primary)
	to := func() node.Node { return h.node(t, primary.Through(proxy.Addr()), Settings{}) }
	y, z := newClient(t, failback, to()), newClient(t, later(failback), to())
	use(t, y, "first")
	replica := h.replace(t, primary, proxy)
	use(t, z, "second") // after the replica's quarantine
	primary.Restart()   // nobody is led to it yet
	lease := lockFor(t, y)
	proxy.LeadTo(primary.Addr())
	proxy.Cut()
	replica.Freeze()
	begin := time.Now()
	second := whenFree(t, z, lease)
	if second == nil {
		return
	}
	if took := time.Since(begin); took < failback.MaxTTL {
		t.Errorf("the server that failed back granted after %v, which is no whole quarantine", took)
	}
	if second.Token() <= lease.Token() {
		t.Errorf("token %v after %v", second.Token(), lease.Token())
	}
}

// heardOfFailback has the same happen to one of three servers. The others have
// noted that it was marked since, and a client that has seen nothing of it does
// not count its grant.
func heardOfFailback(t *testing.T, h Harness) {
	first, primary, third := h.Start(t), h.Start(t), h.Start(t)
	proxy := servertest.NewProxy(t, primary)
	three := func(to *servertest.Proxy) []node.Node {
		return []node.Node{
			h.node(t, first.Through(to.Addr()), Settings{Name: "first"}),
			h.node(t, primary.Through(proxy.Addr()), Settings{Name: "second"}),
			h.node(t, third.DSN(), Settings{Name: "third"}),
		}
	}
	cut, slow := servertest.NewProxy(t, first), servertest.NewProxy(t, first)
	y := newClient(t, failback, three(cut)...)
	use(t, y, "first")
	replica := h.replace(t, primary, proxy)
	ready(t, newClient(t, later(failback), three(slow)...))
	primary.Restart()
	cut.Partition(true)
	lease := lockFor(t, y) // on the replica and the third
	proxy.LeadTo(primary.Addr())
	proxy.Cut()
	replica.Freeze()
	nodes := three(slow)
	for _, n := range nodes { // connections cost each of them another time
		eventually(t, n, node.Request{Op: node.OpInspect, Name: "job"})
	}
	slow.Delay(50 * time.Millisecond) // the one that knows answers last
	whenFree(t, newClient(t, later(failback), nodes...), lease)
}

// ready waits until every node is back in service.
func ready(t testing.TB, c *redlatch.Client) {
	t.Helper()
	poll.Within(t, patience, func() error {
		states := admin.New(c).Ready(context.Background())
		if slices.ContainsFunc(states, func(r admin.Readiness) bool { return !r.Ready }) {
			return fmt.Errorf("%+v", states)
		}
		return nil
	})
}

// replace has a replica take the place of a server that is killed.
func (h Harness) replace(t testing.TB, primary *servertest.OwnDatabase, proxy *servertest.Proxy) *servertest.OwnDatabase {
	t.Helper()
	replica, promote := h.Follow(t, primary)
	primary.Kill()
	promote()
	proxy.LeadTo(replica.Addr())
	proxy.Cut()
	return replica
}

// later are the options of a client that does not declare its nodes new.
func later(o redlatch.Options) redlatch.Options {
	o.AssumeFresh = false
	return o
}

// lock acquires a name, as soon as that is possible.
func lock(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	var l *redlatch.Lease
	poll.Within(t, patience, func() (err error) {
		l, err = c.TryLock(context.Background(), name, &opts)
		return err
	})
	return l
}

func use(t testing.TB, c *redlatch.Client, name string) {
	t.Helper()
	if err := lock(t, c, name, redlatch.LockOptions{}).Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// lockFor acquires the name "job" for as long as possible, and not longer.
func lockFor(t testing.TB, c *redlatch.Client) *redlatch.Lease {
	t.Helper()
	return lock(t, c, "job", redlatch.LockOptions{TTL: failback.MaxTTL, NoKeepAlive: true})
}

// whenFree has a client ask until it is granted the lock of another one, which
// must be over then.
func whenFree(t testing.TB, c *redlatch.Client, lease *redlatch.Lease) *redlatch.Lease {
	t.Helper()
	refused := false
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		second, err := c.TryLock(context.Background(), "job", nil)
		if err == nil {
			if left := lease.Remaining(); left > 0 {
				t.Errorf("two holders: the first has %v left", left)
			}
			if !refused {
				t.Error("nobody asked while the lock was held")
			}
			return second
		}
		refused = refused || lease.Remaining() > 0 && (errors.Is(err, redlatch.ErrQuarantine) || errors.Is(err, redlatch.ErrHeld))
	}
	t.Error("the lock was never granted again")
	return nil
}
