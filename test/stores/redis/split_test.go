//go:build unix

package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rueidisclient "github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// divided is a master with replicas behind Sentinel, on a network that can be cut:
// the master and one client on one side, all others on the other.
type divided struct {
	master   *servertest.Server
	replicas []*servertest.Server
	sentinel *servertest.Server
	toMaster *servertest.Proxy // for replicas, sentinel and the clients of that side
	toOthers *servertest.Proxy // from the master's side to the sentinel
}

// failover is how long Sentinel may take to promote a replica. One that was stopped
// for 2 s decides nothing for 30 s, and again if it is stopped meanwhile.
const failover = 3 * time.Minute

func startSentinel(t testing.TB, replicas int) *divided {
	t.Helper()
	d := &divided{master: servertest.Redis(t, 1, "--repl-diskless-sync-delay", "0")[0]}
	d.toMaster = servertest.NewProxy(t, d.master)
	host, port, _ := net.SplitHostPort(d.toMaster.Addr())
	d.replicas = servertest.Redis(t, replicas, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	awaitReplicas(t, d.master, replicas)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 3000\n", host, port)
	must(t, os.WriteFile(config, []byte(text), 0o600))
	d.sentinel = servertest.Start(t, &redisproc.Server{Sentinel: config})
	d.toOthers = servertest.NewProxy(t, d.sentinel)
	eventually(t, patience, func() error {
		if !strings.Contains(d.sentinel.Do("INFO", "sentinel"), fmt.Sprintf("slaves=%d", replicas)) {
			return errors.New("the sentinel has not found all replicas yet")
		}
		return nil
	})
	return d
}

// address is that of the clients beside Sentinel.
func (d *divided) address() string { return "redis+sentinel://" + d.sentinel.Addr() + "/main" }

func awaitReplicas(t testing.TB, s *servertest.Server, n int) {
	t.Helper()
	eventually(t, patience, func() error {
		if info := s.Do("INFO", "replication"); strings.Count(info, "state=online") < n {
			return fmt.Errorf("fewer than %d replicas are online: %s", n, info)
		}
		return nil
	})
}

// cut loses all packets between the two sides. Connections stay open.
func (d *divided) cut() {
	d.toMaster.Partition(true)
	d.toOthers.Partition(true)
}

// onMastersSide returns a node that reaches the master during every partition.
func (d *divided) onMastersSide(t testing.TB) []redlatch.Node {
	t.Helper()
	ways := map[string]string{d.toMaster.Addr(): d.master.Addr(), d.sentinel.Addr(): d.toOthers.Addr()}
	client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress: []string{d.sentinel.Addr()}, Sentinel: rueidisclient.SentinelOption{MasterSet: "main"},
		DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		DialCtxFn: func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if ways[address] == "" {
				return nil, fmt.Errorf("there is no way to %s", address)
			}
			return dialer.DialContext(ctx, "tcp", ways[address])
		},
	})
	must(t, err)
	t.Cleanup(client.Close)
	node, err := rueidis.From(client, &rueidis.Options{Name: "main"})
	must(t, err)
	return []redlatch.Node{node}
}

// TestMasterThatIsCutOffWithAHolderStopsBeforeItsReplicaGrants cuts off holder
// and master from Sentinel and the replicas, one of which is promoted. Without
// required replicas the same run shows two holders, so this test can fail.
func TestMasterThatIsCutOffWithAHolderStopsBeforeItsReplicaGrants(t *testing.T) {
	t.Parallel()
	split := func(t testing.TB, replicas int) (first *redlatch.Client, l, next *redlatch.Lease) {
		d := startSentinel(t, 2)
		opts := quick
		opts.Membership = "prod"
		second := newClient(t, open(t, d.address()), opts) // reads the number from the marker
		opts.Replicas = replicas
		first = newClient(t, d.onMastersSide(t), opts)
		for _, c := range []*redlatch.Client{first, second} {
			eventually(t, patience, func() error { return cycle(c) })
		}
		l = mustLock(t, first, "job", redlatch.LockOptions{})
		d.cut()
		eventually(t, failover, func() (err error) {
			next, err = second.TryLock(context.Background(), "job", nil)
			return err
		})
		return first, l, next
	}
	t.Run("no replica is required", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			start := time.Now()
			_, l, next := split(t, redlatch.NoReplicas)
			if l.Remaining() <= 0 {
				stall.TooLate(t, "the first lease ended before the second began: %v", context.Cause(l.Context()))
			}
			if err := l.Extend(context.Background()); err != nil {
				stall.Busy(t, starved, start)
				t.Fatalf("the old master does not extend any more (%v): nothing is shown", err)
			}
			if next.Remaining() <= 0 {
				stall.TooLate(t, "the second lease has ended")
			}
			t.Logf("two holders: the first lease has %v left, the second %v", l.Remaining(), next.Remaining())
		})
	})
	t.Run("one replica is required", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			first, l, next := split(t, 1)
			if left := l.Remaining(); left > 0 {
				exclusion.Never(t, "two holders: %v are left of the first lease", left)
			}
			wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
			if next.Token() <= l.Token() {
				exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
			}
			// It grants nothing else either while it is cut off.
			_, err := first.TryLock(context.Background(), "other", nil)
			wantErr(t, err, redlatch.ErrNoQuorum)
			if want := "UNREPLICATED 0 of 1 required replicas are online with a lag of 2 s or less"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
			t.Log("the old master says:", err)
		})
	})
}
