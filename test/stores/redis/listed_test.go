//go:build unix

package redis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestInitRefusesFewerReplicasThanTheSentinelsList requires one of two replicas,
// on new servers, as a change, and by a marker from before a replica was added. A
// replica that is down counts until the sentinels forget it.
func TestInitRefusesFewerReplicasThanTheSentinelsList(t *testing.T) {
	t.Parallel()
	eachLibrary(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		t.Parallel()
		d := startSentinel(t, 2)
		d.sentinel.Do("SENTINEL", "SET", "main", "down-after-milliseconds", "600000") // a failover is not meant, however slow the machine
		address := d.address()
		initialize := func(replicas int, former ...string) error {
			opts := quick
			opts.Replicas, opts.NodeTimeout = replicas, 10*time.Second
			c, err := redlatch.New(nodes(address), &opts)
			must(t, err)
			defer c.Close()
			init := admin.InitOptions{}
			if len(former) > 0 {
				init.Former = nodes(former...)
			}
			_, err = admin.New(c).Init(context.Background(), &init)
			return err
		}
		marker := func() string { return d.master.Do("GET", "redlatch:1:marker") }
		refused := func(err error) {
			t.Helper()
			wantErr(t, err, redlatch.ErrConfig)
			wantText(t, err, "Replicas is 1", "2, the number of all replicas", "SENTINEL RESET")
		}
		refused(initialize(1))
		if m := marker(); m != "" {
			t.Errorf("the server is marked %q", m)
		}
		must(t, initialize(redlatch.NoReplicas))
		before := marker()
		refused(initialize(1, address))
		d.replicas[0].Kill()
		refused(initialize(1, address))
		if m := marker(); m != before {
			t.Errorf("the marker was %q, and is %q", before, m)
		}
		d.sentinel.Do("SENTINEL", "RESET", "main")
		found := func(replica *servertest.Server) {
			t.Helper()
			_, port, _ := net.SplitHostPort(replica.Addr())
			eventually(t, patience, func() error {
				if got := d.sentinel.Do("SENTINEL", "REPLICAS", "main"); !strings.Contains(got, port) {
					return errors.New("the sentinel has not found the replica: " + got)
				}
				return nil
			})
		}
		found(d.replicas[1])
		must(t, initialize(1, address))
		must(t, initialize(0))
		d.replicas[0].Restart()
		found(d.replicas[0])
		refused(initialize(0)) // by the marker's number
	})
}
