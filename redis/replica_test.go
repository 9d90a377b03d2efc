//go:build unix

package redis_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/node"
)

// TestWritableReplicaConfirmsNothing sends a writable replica that has a lock's
// key every request that would extend or repair the lock.
func TestWritableReplicaConfirmsNothing(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, 1)[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Start(t, 1, "--replicaof", host, port, "--replica-read-only", "no")[0]
	opts := quick
	opts.Guard = redlatch.GuardOn
	lease, err := newClient(t, open(t, master.URL()), opts).Lock(context.Background(), "job", redlatch.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, func() error {
		if value := replica.Do("GET", "job"); value == "" {
			return context.DeadlineExceeded
		}
		return nil
	})
	value, n := master.Do("GET", "job"), open(t, replica.URL())[0]
	defer n.Close()
	marked := &node.Guard{List: strings.Fields(master.Do("GET", "redlatch:1:marker"))[2], Nodes: master.URL(),
		MaxTTL: quick.MaxTTL, Window: quick.TokenWindow, Quarantine: 2133 * time.Millisecond}
	for name, guard := range map[string]*node.Guard{"on": marked, "off": nil} {
		for _, op := range []node.Op{node.OpExtend, node.OpRepair} {
			reply, err := n.Do(context.Background(), node.Request{Op: op, Name: "job", Value: value, TTL: time.Second,
				Token: lease.Token(), Window: quick.TokenWindow, Retention: time.Hour, Guard: guard})
			if err == nil || !strings.Contains(err.Error(), "READONLY") {
				t.Errorf("with the guard %s a replica answers %v, %v to %v", name, reply.Status, err, op)
			}
		}
	}
}
