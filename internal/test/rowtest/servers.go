//go:build unix

package rowtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
	mark(t, n)
	want(t, n, guarded(node.OpAcquire, "first"), node.Granted)
	server.Kill()
	if err := within(t, n, request(node.OpInspect, ""), time.Second); err == nil {
		t.Error("a server that was killed has answered")
	}
	server.Restart()
	if r := eventually(t, n, guarded(node.OpAcquire, "second")); r.Status != node.Held {
		t.Errorf("after the restart: %v, want held", r.Status)
	}
	want(t, n, guarded(node.OpRelease, "first"), node.Granted)
}

// failedOver lets a client read the row of a lock and stop. Another client gets the
// lock, and a replica that lacks it takes the server's place. Then the first client
// goes on there. What happens after that is tested in virtual time in package casnode.
func failedOver(t *testing.T, h Harness) {
	primary := h.Start(t)
	proxy := servertest.NewProxy(t, primary)
	holder := h.node(t, primary.DSN(), Settings{})
	mark(t, holder)
	replica, stop, promote := h.Follow(t, primary)
	poll.Within(t, patience, func() error {
		if here, there := h.versions(t, primary), h.versions(t, replica); len(here) == 0 || !slices.Equal(here, there) {
			return fmt.Errorf("the primary has the versions %q, and the replica %q", here, there)
		}
		return nil
	})
	stop()
	stopped := false
	late := h.Between(t, primary, proxy.Addr(), func() {
		if stopped {
			return
		}
		stopped = true
		want(t, holder, guarded(node.OpAcquire, "holder"), node.Granted)
		primary.Kill()
		promote()
		proxy.LeadTo(replica.Addr())
		proxy.Cut()
	})
	want(t, late, guarded(node.OpAcquire, "late"), node.Quarantined)
	if !stopped {
		t.Error("the client was not stopped: this shows nothing")
	}
}

// versions returns those of all rows that a server has.
func (h Harness) versions(t testing.TB, server *servertest.OwnDatabase) (all []string) {
	t.Helper()
	rows, err := h.operator(t, server).Query("SELECT version FROM redlatch_lock ORDER BY name")
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var version string
		if rows.Scan(&version) == nil {
			all = append(all, version)
		}
	}
	return all
}
