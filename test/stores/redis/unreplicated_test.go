//go:build unix

package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestServerWithoutItsReplicasIsBarredAndNotMarked marks a server without
// replicas in every way. The quarantine of one that was promoted begins when a replica
// follows it: only then does the old master miss one.
func TestServerWithoutItsReplicasIsBarredAndNotMarked(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1, servertest.WithDebug(t)...)[0]
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
		r, err := n.(node.Guarded).Mark(t.Context(), node.MarkRequest{Mark: m, Guard: g})
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
	replica := replicaOf(t, s, 1)[0]
	awaitReplicas(t, s, 1)
	s.Do("DEL", "redlatch:1:marker")
	if got := mark(node.MarkFresh, guard(mine, 1)); got != fmt.Sprint(node.Granted) {
		t.Fatal(got)
	}
	before := s.Do("GET", "redlatch:1:marker")
	replica.Kill()
	s.Do("DEBUG", "CHANGE-REPL-ID") // as by a promotion
	eventually(t, patience, func() error {
		if got := mark(node.MarkWrite, guard(mine, 1)); got != "UNREPLICATED" {
			return errors.New(got)
		}
		return nil
	})
	_, err := n.Do(t.Context(), node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Second, Guard: guard(mine, 1)})
	wantText(t, err, "UNREPLICATED 0 of 1 required replicas are online")
	if now := s.Do("GET", "redlatch:1:marker"); now != before {
		t.Errorf("it was marked %q, and is %q", before, now)
	}
	replicaOf(t, s, 1)
	awaitReplicas(t, s, 1)
	eventually(t, patience, func() error {
		r, err := n.(node.Guarded).Mark(t.Context(), node.MarkRequest{Mark: node.MarkWrite, Guard: guard(mine, 1)})
		if err == nil && (r.Status != node.Quarantined || r.Left < 50*time.Second) {
			t.Errorf("with a replica it is marked %+v", r)
		}
		return err
	})
}
