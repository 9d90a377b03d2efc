//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
)

// TestQuarantineOfAPromotedReplicaBeginsWhenItsReplicasAreBack has one of two
// replicas promoted, while the other stays with the old master, and with a
// holder there. One replica is required. A whole quarantine later the other
// replica changes sides: only then does the old master stop.
func TestQuarantineOfAPromotedReplicaBeginsWhenItsReplicasAreBack(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		master := servertest.Redis(t, 1, "--repl-diskless-sync-delay", "0")[0]
		replicas := replicaOf(t, master, 2)
		awaitReplicas(t, master, 2)
		opts := quick
		opts.MaxTTL, opts.TTL, opts.Replicas = 4*time.Second, 4*time.Second, 1
		first, second := twoWays(t, master, replicas[0], opts)
		eventually(t, patience, func() error { return cycle(first) })
		start := time.Now()
		l := mustLock(t, first, "job", redlatch.LockOptions{})
		replicas[0].Do("REPLICAOF", "NO", "ONE")
		const quarantine = 8*time.Second + 267*time.Millisecond
		for end := time.Now().Add(quarantine + time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			l2, err := second.TryLock(context.Background(), "job", nil)
			if err == nil {
				exclusion.Never(t, "a master without replicas granted a lock, for %v", l2.Remaining())
			}
		}
		_, err := second.TryLock(context.Background(), "job", nil)
		if want := "UNREPLICATED 0 of 1 required replicas are online"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
		if err := l.Extend(context.Background()); err != nil {
			stall.Busy(t, 100*time.Millisecond, start) // a lease of four seconds
			t.Fatalf("the old master does not extend any more (%v): nothing is shown", err)
		}
		host, port, _ := strings.Cut(replicas[0].Addr(), ":")
		replicas[1].Do("REPLICAOF", host, port)
		wantNoSecond(t, second, l)
		wantErr(t, l.Err(), redlatch.ErrLost)
		eventually(t, patience, func() error { return cycle(second) })
	})
}

// TestServerWithoutItsReplicasIsBarredAndNotMarked marks a server without
// replicas in every way.
func TestServerWithoutItsReplicasIsBarredAndNotMarked(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	n := open(t, s.URL())[0]
	t.Cleanup(func() { n.Close() })
	guard := func(list string, replicas int) *node.Guard {
		g := &node.Guard{Membership: list, Nodes: "a", MaxTTL: time.Second, Window: time.Second, Quarantine: time.Minute, Replicas: replicas}
		if replicas > 0 {
			g.ReplicaLag = 2 * time.Second
		}
		return g
	}
	mark := func(m node.Mark, g *node.Guard) string {
		r, err := n.Do(t.Context(), node.Request{Op: node.OpMark, Mark: m, Guard: g})
		if err != nil {
			code, _, _ := strings.Cut(err.Error(), " ")
			return code
		}
		return fmt.Sprint(r.Status)
	}
	const mine, other = "0123456789abcdef", "fedcba9876543210"
	for _, c := range []struct {
		mark  node.Mark
		guard *node.Guard
		want  string
	}{
		{node.MarkWrite, guard(mine, 1), "UNREPLICATED"},
		{node.MarkFresh, guard(mine, 1), "UNREPLICATED"},
		{node.MarkReplace, guard(mine, 1), "UNREPLICATED"},
		{node.MarkRead, guard(mine, 1), fmt.Sprint(node.Absent)},
		{node.MarkBar, guard(mine, 1), fmt.Sprint(node.Misconfigured)},
		{node.MarkReplace, guard(other, 1), "UNREPLICATED"},
		{node.MarkReplace, guard(other, 0), fmt.Sprint(node.Quarantined)}, // it goes by the new number
		{node.MarkReplace, guard(mine, 1), "UNREPLICATED"},
		{node.MarkRead, guard(other, 0), fmt.Sprint(node.Quarantined)}, // and is what it was
	} {
		if got := mark(c.mark, c.guard); got != c.want {
			t.Errorf("mark %v with %d replicas required: %s, want %s", c.mark, c.guard.Replicas, got, c.want)
		}
	}
}
