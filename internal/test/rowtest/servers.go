//go:build unix

package rowtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

func frozen(t *testing.T, h Harness) {
	server, n, _ := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	server.Freeze()
	if err := within(t, n, request(node.OpExtend, "first"), 300*time.Millisecond); err == nil {
		t.Error("a frozen server has answered")
	}
	server.Thaw()
	stillHeld(t, n)
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}

// restarted: what the server acknowledged it still has, so it is trusted at once.
func restarted(t *testing.T, h Harness) {
	server, n, _ := h.open(t, Settings{})
	c := newClient(t, bounds(time.Minute), n)
	lease := lockFor(t, c, time.Minute)
	server.Kill()
	if err := within(t, n, request(node.OpInspect, ""), time.Second); err == nil {
		t.Error("a server that was killed has answered")
	}
	server.Restart()
	var err error
	poll.Holds(patience, func() bool {
		_, err = c.TryLock(context.Background(), "job", nil)
		return errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrQuarantine)
	})
	if !errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrQuarantine) {
		t.Errorf("after the restart: %v, want ErrHeld", err)
	}
	if err := lease.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// failedOver has a replica that lacks a lock take the server's place, behind the
// same address.
func failedOver(t *testing.T, h Harness) {
	primary := h.Start(t)
	proxy := servertest.NewProxy(t, primary)
	c := newClient(t, bounds(short), h.node(t, primary.Through(proxy.Addr()), Settings{}))
	use(t, c, "other")
	var lease *redlatch.Lease
	h.replace(t, primary, proxy, func() { lease = lockFor(t, c, short) })
	whenFree(t, c, lease, quarantined)
}

// failedBack has a replica take the place of a single server, a lock be acquired
// there, and the former primary come back as it was. A client that has seen the
// replica marks it again, and from then on nobody is granted the lock in a whole
// quarantine.
func failedBack(t *testing.T, h Harness) {
	primary := h.Start(t)
	proxy := servertest.NewProxy(t, primary)
	to := func() node.Node { return h.node(t, primary.Through(proxy.Addr()), Settings{}) }
	y, z := newClient(t, bounds(long), to()), newClient(t, later(bounds(long)), to())
	use(t, y, "first")
	replica := h.replace(t, primary, proxy, nil)
	use(t, z, "second") // after the replica's quarantine
	primary.Restart()   // nobody is led to it yet
	lease := lockFor(t, y, long)
	lead(proxy, primary)
	replica.Freeze()
	begin := time.Now()
	whenFree(t, z, lease, whileHeld(lease))
	if took := time.Since(begin); took < long {
		t.Errorf("the server that failed back granted after %v, which is no whole quarantine", took)
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
	y := newClient(t, bounds(long), three(cut)...)
	use(t, y, "first")
	replica := h.replace(t, primary, proxy, nil)
	ready(t, newClient(t, later(bounds(long)), three(slow)...))
	primary.Restart()
	cut.Partition(true)
	lease := lockFor(t, y, long) // on the replica and the third
	lead(proxy, primary)
	replica.Freeze()
	nodes := three(slow)
	for _, n := range nodes { // connections cost each of them another time
		eventually(t, n, node.Request{Op: node.OpInspect, Name: "job"})
	}
	slow.Delay(50 * time.Millisecond) // the one that knows answers last
	whenFree(t, newClient(t, later(bounds(long)), nodes...), lease, whileHeld(lease))
}

// replace has a replica take the place of a server that is killed. It lacks what
// happens meanwhile.
func (h Harness) replace(t testing.TB, primary *servertest.OwnDatabase, proxy *servertest.Proxy, meanwhile func()) *servertest.OwnDatabase {
	t.Helper()
	replica, promote := h.Follow(t, primary)
	if meanwhile != nil {
		replica.Freeze()
		meanwhile()
	}
	primary.Kill()
	if meanwhile != nil {
		replica.Thaw()
	}
	promote()
	lead(proxy, replica)
	return replica
}

// lead has a proxy lead to another server.
func lead(proxy *servertest.Proxy, to *servertest.OwnDatabase) {
	proxy.LeadTo(to.Addr())
	proxy.Cut()
}
