//go:build unix

package redis_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// Each test here has one name lead one client to one server and another client
// to another server. Both servers run.

// twoWays returns a client that is led to a and a client that is led to b.
func twoWays(t testing.TB, a, b *servertest.Server, opts redlatch.Options) (first, second *redlatch.Client) {
	t.Helper()
	opts.Membership, opts.Guard = "prod", redlatch.GuardOn
	return newClient(t, open(t, a.URL()), opts), newClient(t, open(t, b.URL()), opts)
}

func replicaOf(t testing.TB, s *servertest.Server, n int) []*servertest.Server {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr())
	return servertest.Redis(t, n, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
}

// TestPromotedReplicaGrantsWhileTheOldMasterDoesUnlessAllReplicasAreRequired
// has one of two replicas promoted, and the other stay with the old master. The
// other counts for the old master: one required replica, which is what
// min-replicas-to-write 1 asks for, is not enough.
func TestPromotedReplicaGrantsWhileTheOldMasterDoesUnlessAllReplicasAreRequired(t *testing.T) {
	t.Parallel()
	promote := func(t testing.TB, required int) (first, second *redlatch.Client, l *redlatch.Lease) {
		master, replicas := withReplicas(t, 2)
		opts := quick
		opts.Replicas = required
		first, second = twoWays(t, master, replicas[0], opts)
		eventually(t, patience, func() error { return cycle(first) })
		l = mustLock(t, first, "job", redlatch.LockOptions{})
		replicas[0].Do("REPLICAOF", "NO", "ONE")
		replicaOf(t, replicas[0], 1)
		awaitReplicas(t, replicas[0], 1)
		return first, second, l
	}
	t.Run("one of two is required", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			start := time.Now()
			_, second, l := promote(t, 1)
			eventually(t, patience, func() error {
				_, err := second.TryLock(context.Background(), "job", nil)
				return err
			})
			if err := l.Extend(context.Background()); err != nil {
				stall.Busy(t, starved, start) // a lease of two seconds
				t.Fatalf("the old master does not extend any more (%v): nothing is shown", err)
			}
		})
	})
	t.Run("both are required", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			first, second, l := promote(t, 2)
			wantNoSecond(t, second, l)
			wantErr(t, l.Err(), redlatch.ErrLost)
			for name, c := range map[string]*redlatch.Client{"old": first, "new": second} {
				eventually(t, patience, func() error {
					_, err := c.TryLock(context.Background(), "job", nil)
					if err == nil {
						exclusion.Never(t, "the %s master grants with one of two replicas", name)
					}
					if !strings.Contains(err.Error(), "UNREPLICATED 1 of 2 required replicas") {
						return err
					}
					return nil
				})
			}
		})
	})
}

// TestOneNameForTwoUnrelatedServersLetsASecondHolderIn shows a case that
// nothing prevents: each of the servers is a node of its own, marked and
// trusted.
func TestOneNameForTwoUnrelatedServersLetsASecondHolderIn(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 2)
		first, second := twoWays(t, servers[0], servers[1], quick)
		start := time.Now()
		l := mustLock(t, first, "job", redlatch.LockOptions{})
		mustLock(t, second, "job", redlatch.LockOptions{})
		if err := l.Extend(context.Background()); err != nil {
			stall.In(t, quick.MaxTTL/2, start)
			t.Fatalf("the first server does not extend any more (%v): nothing is shown", err)
		}
	})
}
