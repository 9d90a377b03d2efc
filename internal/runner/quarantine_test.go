package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

// wholeQuarantine is the quarantine of the defaults.
var wholeQuarantine = protocol.Quarantine(30*time.Second, 10*time.Second, 0)

// trusted returns a client of nodes that are in service.
func trusted(t *testing.T, nodes []redlatch.Node) *redlatch.Client {
	t.Helper()
	c := locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true})
	locktest.MustLock(t, c, "first", redlatch.LockOptions{}).Release(t.Context())
	return c
}

// rebooted returns nodes that were in service, and have rebooted while no client ran.
func rebooted(t *testing.T, n int) []redlatch.Node {
	all, nodes := locktest.NewGuarded(n)
	trusted(t, nodes)
	for _, g := range all {
		g.Reboot()
	}
	return nodes
}

// TestLockOutwaitsAQuarantineThatBeginsWithItsFirstRequest has all nodes rebooted, so
// that their quarantines begin with the nightly job, or a node that is new.
func TestLockOutwaitsAQuarantineThatBeginsWithItsFirstRequest(t *testing.T) {
	for name, ask := range map[string]redlatch.LockOptions{
		"no limit": {}, "a wait shorter than the quarantine": {Wait: time.Second},
	} {
		for _, n := range []int{0, 1, 3, 5} {
			locktest.Run(t, fmt.Sprint(name, "/", n), func(t *testing.T) {
				_, nodes := locktest.NewGuarded(1)
				if n > 0 {
					nodes = rebooted(t, n)
				}
				c := locktest.NewClient(t, nodes, redlatch.Options{})
				start := time.Now()
				locktest.MustLock(t, c, "job", ask).Release(t.Context())
				locktest.WantTook(t, start, wholeQuarantine, wholeQuarantine+100*time.Millisecond)
			})
		}
	}
}

// TestTryLockSaysWhenTheQuarantineEnds asks again at that moment.
func TestTryLockSaysWhenTheQuarantineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, nodes := locktest.NewGuarded(3)
		trusted(t, nodes)
		all[0].Reboot()
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.MustLock(t, c, "another", redlatch.LockOptions{}).Release(t.Context())
		time.Sleep(10 * time.Second)
		all[1].Reboot()
		all[2].SetDown(true)
		start := time.Now()
		_, err := c.TryLock(t.Context(), "job", nil)
		locktest.WantTook(t, start, 0, 10*time.Millisecond)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrQuarantine)
		var quorum *redlatch.QuorumError
		if !errors.As(err, &quorum) {
			t.Fatal(err)
		}
		if left, nodes := quorum.QuarantineLeft, quorum.Quarantined; left != wholeQuarantine || nodes != 2 {
			t.Errorf("%d nodes in quarantine for %v, want 2 for %v: one that has less left is no quorum", nodes, left, wholeQuarantine)
		}
		all[2].SetDown(false)
		_, err = c.TryLock(t.Context(), "job", nil)
		if errors.As(err, &quorum); quorum == nil {
			t.Fatal(err)
		}
		left := quorum.QuarantineLeft
		if left != wholeQuarantine-10*time.Second {
			t.Errorf("%v left, want %v: then the first node is back", left, wholeQuarantine-10*time.Second)
		}
		time.Sleep(left)
		if _, err = c.TryLock(t.Context(), "job", nil); err != nil {
			t.Error(err)
		}
	})
}

// TestNodesThatAreDownAreNoQuarantine has one node in quarantine and two down,
// so that the end of the quarantine gives no quorum; or three new nodes of which one
// is down, so that nobody may mark the others.
func TestNodesThatAreDownAreNoQuarantine(t *testing.T) {
	for _, used := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			all, nodes := locktest.NewGuarded(3)
			if used {
				trusted(t, nodes)
				all[0].Reboot()
				all[1].SetDown(true)
			}
			all[2].SetDown(true)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			start := time.Now()
			_, err := c.Lock(context.Background(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			locktest.WantTook(t, start, redlatch.OutagePatience, redlatch.OutagePatience+time.Second)
			var quorum *redlatch.QuorumError
			if errors.As(err, &quorum); quorum.QuarantineLeft != 0 || !used && !errors.Is(err, redlatch.ErrQuarantine) {
				t.Errorf("nodes that were in service: %v; got %v, and %v until a quorum is back", used, err, quorum.QuarantineLeft)
			}
		})
	}
}

// TestWaitForAHolderIsNotShortenedByAQuarantine has a lock that was granted
// before the nodes rebooted, and is still held afterwards.
func TestWaitForAHolderIsNotShortenedByAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, nodes := locktest.NewGuarded(3)
		held := locktest.MustLock(t, trusted(t, nodes), "job", redlatch.LockOptions{})
		for _, g := range all {
			g.Reboot()
		}
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		_, err := c.TryLock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrQuarantine)
		synctest.Wait() // every quarantine has begun
		start := time.Now()
		_, err = c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 3 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		locktest.WantTook(t, start, wholeQuarantine+3*time.Second, wholeQuarantine+3200*time.Millisecond)
		if held.Err() != nil {
			t.Error(held.Err())
		}
		held.Release(t.Context())
	})
}

// TestQuarantineThatBeginsAgainAndAgainEndsTheWait loses one node after the
// other, so that there is never a quorum.
func TestQuarantineThatBeginsAgainAndAgainEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, nodes := locktest.NewGuarded(1)
		trusted(t, nodes)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for i := range 10 {
			time.AfterFunc(time.Duration(i)*10*time.Second, all[0].Reboot)
		}
		time.Sleep(time.Millisecond)
		start := time.Now()
		_, err := c.Lock(context.Background(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrQuarantine)
		most := wholeQuarantine + redlatch.OutagePatience
		locktest.WantTook(t, start, most, most+time.Second)
	})
}

// TestCallersOfOneClientOutwaitAQuarantineTogether has callers with and without
// a limit in one local queue.
func TestCallersOfOneClientOutwaitAQuarantineTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := locktest.NewClient(t, rebooted(t, 3), redlatch.Options{})
		start := time.Now()
		callers := &line{t: t}
		for i := range 12 {
			callers.join(c, fmt.Sprint(i), time.Millisecond, redlatch.LockOptions{Wait: time.Duration(i%3) * 5 * time.Second})
		}
		callers.all.Wait()
		locktest.WantTook(t, start, wholeQuarantine, wholeQuarantine+5*time.Second)
	})
}

// TestLockAllOutwaitsAQuarantineOnce has a wait that is shorter than the
// quarantine, for two names.
func TestLockAllOutwaitsAQuarantineOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, nodes := locktest.NewGuarded(3)
		other := trusted(t, nodes)
		for _, g := range all {
			g.Reboot()
		}
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		time.AfterFunc(wholeQuarantine+time.Millisecond, func() {
			l, err := other.TryLock(t.Context(), "b", nil)
			if err == nil {
				time.AfterFunc(2*time.Second, func() { l.Release(context.Background()) })
			}
		})
		leases, err := c.LockAll(t.Context(), []string{"a", "b"}, &redlatch.LockOptions{Wait: 5 * time.Second})
		must(t, err)
		leases.Release(t.Context())
		time.Sleep(3 * time.Second)
	})
}

// TestOnlyNodesThatCountReplicasWarnOfSentinel: a database is guarded alone too.
func TestOnlyNodesThatCountReplicasWarnOfSentinel(t *testing.T) {
	for _, counts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			all, nodes := locktest.NewGuarded(1)
			if counts {
				nodes[0] = countingReplicas{all[0]}
			}
			var log bytes.Buffer
			c := locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())
			if got := strings.Contains(log.String(), "Sentinel"); got != counts {
				t.Errorf("it can require replicas: %v; the log: %s", counts, log.String())
			}
		})
	}
}

// countingReplicas is a node that can require replicas.
type countingReplicas struct{ *locktest.Guarded }

func (countingReplicas) ListedReplicas(context.Context) (int, bool, error) { return 0, false, nil }

func TestReplicasAreRefusedWhereTheyCannotBeCounted(t *testing.T) {
	for _, counts := range []bool{true, false} {
		var n redlatch.Node = &locktest.Guarded{Name: "one"}
		if counts {
			n = countingReplicas{&locktest.Guarded{Name: "one"}}
		}
		c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{Guard: redlatch.GuardOn, Cluster: redlatch.Cluster{Replicas: 1}})
		if counts {
			must(t, err)
			c.Close()
			continue
		}
		locktest.WantConfigError(t, err, "Replicas")
		if !strings.Contains(err.Error(), "one, which cannot count") {
			t.Errorf("the node is not named: %v", err)
		}
	}
}

// TestLongerParametersOutliveATotalLoss has all nodes lose their data, after a process
// has adopted longer parameters than the defaults. It marks the nodes with those. If
// another process was faster, and has marked them with the defaults, it does not
// follow.
func TestLongerParametersOutliveATotalLoss(t *testing.T) {
	for _, faster := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			all, nodes := locktest.NewGuarded(3)
			first := locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true, Cluster: redlatch.Cluster{MaxTTL: 10 * time.Minute}})
			locktest.MustLock(t, first, "first", redlatch.LockOptions{}).Release(t.Context())
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			locktest.MustLock(t, c, "second", redlatch.LockOptions{}).Release(t.Context())
			synctest.Wait() // no request is left that meets an empty node
			for _, g := range all {
				g.Empty()
			}
			if faster {
				other := locktest.NewClient(t, nodes, redlatch.Options{})
				locktest.MustLock(t, other, "third", redlatch.LockOptions{}).Release(t.Context())
				_, err := c.TryLock(t.Context(), "job", nil)
				locktest.WantConfigError(t, err, "MaxTTL")
				return
			}
			_, err := c.TryLock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrQuarantine)
			synctest.Wait()
			for _, g := range all {
				if got := g.Marker().Guard.MaxTTL; got != 10*time.Minute {
					t.Errorf("%s is marked with a MaxTTL of %v", g, got)
				}
			}
		})
	}
}
