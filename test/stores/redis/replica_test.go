//go:build unix

package redis_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestWritableReplicaConfirmsNothing sends a writable replica every request that
// would grant, extend or repair a lock, whole or shared. The replica has the
// key of one lock. The guard is on, off, or not asked for.
func TestWritableReplicaConfirmsNothing(t *testing.T) {
	t.Parallel()
	master := servertest.Redis(t, 1)[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := servertest.Redis(t, 1, "--replicaof", host, port, "--replica-read-only", "no")[0]
	// The first replica gives the master a new replication id.
	inStep(t, replica)
	opts := quick
	opts.Guard = redlatch.GuardOn
	lease, err := newClient(t, open(t, master.URL()), opts).Lock(context.Background(), "job", nil)
	must(t, err)
	poll.Until(t, "the replica has the lock", func() bool { return replica.Do("GET", "job") != "" })
	value, n := master.Do("GET", "job"), open(t, replica.URL())[0]
	defer n.Close()
	marked := &node.Guard{Membership: strings.Fields(master.Do("GET", "redlatch:1:marker"))[3], Nodes: master.URL(),
		MaxTTL: quick.MaxTTL, Window: time.Second, Quarantine: 3133 * time.Millisecond}
	unmarked := *marked
	unmarked.Off = true
	refuse := func(guard string, req node.Request) {
		t.Helper()
		reply, err := n.Do(context.Background(), req)
		if err == nil || !strings.Contains(err.Error(), "READONLY") {
			t.Errorf("with the guard %s a replica answers %v, %v to %v of %q", guard, reply.Status, err, req.Op, req.Name)
		}
	}
	for name, guard := range map[string]*node.Guard{"on": marked, "off": &unmarked, "absent": nil} {
		req := node.Request{Name: "job", Value: value, TTL: time.Second,
			Fencing: node.Fencing{Token: lease.Token(), Window: time.Second, Retention: time.Hour}, Guard: guard}
		for _, req.Op = range []node.Op{node.OpExtend, node.OpRepair} {
			refuse(name, req)
		}
		for _, req.Share = range []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}} {
			req.Op, req.Name, req.Value = node.OpAcquire, "free "+name, "another "+req.Share.Mode.String()
			req.Token = node.Token(time.Now().UnixMicro())
			refuse(name, req)
			req.Op = node.OpRepair
			refuse(name, req)
		}
	}
	master.Do("DEL", "redlatch:1:marker")
	poll.Until(t, "the replica has no marker", func() bool { return replica.Do("GET", "redlatch:1:marker") == "" })
	for _, share := range []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}} {
		refuse("off and no marker", node.Request{Op: node.OpAcquire, Name: "new", Value: "another", TTL: time.Second, Share: share,
			Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro()), Window: time.Second, Retention: time.Hour}, Guard: &unmarked})
	}
}
