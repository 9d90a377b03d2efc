package admin_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

func TestABreakFreesTheLockAndOutdoesItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 5)
		a, b := locktest.NewClient(t, nodes, redlatch.Options{}), locktest.NewClient(t, nodes, redlatch.Options{})
		lease := locktest.MustLock(t, a, "job", redlatch.LockOptions{})
		report, err := admin.New(b).Break(t.Context(), "job", nil)
		must(t, err)
		if report.Token <= lease.Token() || len(report.Nodes) != 5 {
			t.Errorf("the report is %+v, the lease's token %d", report, lease.Token())
		}
		// The holder has not noticed yet. The next holder's token is higher.
		if lease.Err() != nil {
			t.Errorf("the holder was told: %v", lease.Err())
		}
		next := locktest.MustLock(t, b, "job", redlatch.LockOptions{})
		if next.Token() <= report.Token {
			exclusion.Never(t, "the next token is %d, that of the break %d", next.Token(), report.Token)
		}
		locktest.WantErr(t, lease.Extend(t.Context()), redlatch.ErrLost)
		if err := next.Extend(t.Context()); err != nil {
			t.Errorf("the next holder: %v", err)
		}
	})
}

func TestABreakLeavesAloneWhoCameAfterTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		a, b := locktest.NewClient(t, nodes, redlatch.Options{Label: "later"}), locktest.NewClient(t, nodes, redlatch.Options{})
		stuck := locktest.MustLock(t, a, "job", redlatch.LockOptions{})
		seen, err := admin.New(b).Show(t.Context(), "job")
		must(t, err)
		stuck.Release(t.Context())
		later := locktest.MustLock(t, a, "job", redlatch.LockOptions{})
		_, err = admin.New(b).Break(t.Context(), "job", &admin.BreakOptions{Seen: seen.Fence})
		if held, ok := errors.AsType[*redlatch.HeldError](err); !ok || held.Holders[0].Owner != later.Owner() {
			t.Errorf("the break of what has changed hands: %v", err)
		}
		if err := later.Extend(t.Context()); err != nil {
			t.Errorf("the later holder: %v", err)
		}
	})
}

// TestABreakOnAMinorityIsNoBreak has two of three nodes unplugged: before the look at
// the lock, which then asks none to break, and after it.
func TestABreakOnAMinorityIsNoBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		lease := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		synctest.Wait()
		plug := func(gone error) {
			for _, l := range links[1:] {
				l.Set(func(l *locktest.Link) { l.Refuse = gone })
				l.SetDown(gone)
			}
		}
		plug(errors.New("unplugged"))
		_, err := admin.New(c).Break(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if n := links[0].Count(node.OpBreak); n > 0 {
			t.Errorf("the node that could be reached was asked to break, %d times", n)
		}
		report, err := admin.New(c).Break(t.Context(), "job", &admin.BreakOptions{Seen: lease.Token()})
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		if report.Nodes[0].Reply.Status != node.Granted || report.Nodes[1].Err == nil {
			t.Errorf("the report is %+v", report.Nodes)
		}
		plug(nil)
		// The holder continues, without the node that was broken: the rest of the
		// break may still be in flight. The break can be repeated.
		must(t, lease.Extend(t.Context()))
		synctest.Wait()
		if holder := links[0].Holder(t, "job"); holder != "" {
			t.Errorf("the node that was broken was repaired for %s", holder)
		}
		_, err = admin.New(c).Break(t.Context(), "job", nil)
		must(t, err)
		locktest.WantErr(t, lease.Extend(t.Context()), redlatch.ErrLost)
	})
}

// TestABreakThatComesLateToANodeLeavesTheHolderNoQuorum has the holder extend its
// lease after the break has freed one node, and before it frees the second one. The
// third does not get it.
func TestABreakThatComesLateToANodeLeavesTheHolderNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		a, b := locktest.NewClient(t, nodes, redlatch.Options{}), locktest.NewClient(t, nodes, redlatch.Options{})
		lease := locktest.MustLock(t, a, "job", redlatch.LockOptions{})
		synctest.Wait()
		links[1].Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpBreak: 100 * time.Millisecond} })
		links[2].Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpBreak: 10 * time.Second} })
		broken := make(chan error, 1)
		go func() {
			_, err := admin.New(b).Break(t.Context(), "job", &admin.BreakOptions{Seen: lease.Token()})
			broken <- err
		}()
		time.Sleep(10 * time.Millisecond)
		if links[0].Holder(t, "job") != "" {
			t.Fatal("the break has not freed the first node")
		}
		for range 5 { // an answer in the moment in which the round is decided counts for the next one
			must(t, lease.Extend(t.Context()))
			synctest.Wait()
		}
		if links[0].Count(node.OpRepair) == 0 {
			t.Fatal("the first node was sent no repair: this shows nothing")
		}
		must(t, <-broken)
		locktest.WantErr(t, lease.Extend(t.Context()), redlatch.ErrLost)
	})
}

func TestABreakOfAPlainLockGoesByTheNodesClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		for _, l := range links {
			l.Take(t, "job", "another client's", time.Hour)
		}
		// A client whose clock is wrong breaks it too.
		c := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, offClock{time.Now(), time.Hour}))
		if _, err := admin.New(c).Break(t.Context(), "job", nil); err != nil {
			t.Fatal(err)
		}
		locktest.WantFree(t, links, "job")
		_, err := admin.New(c).Break(t.Context(), "", nil)
		locktest.WantErr(t, err, redlatch.ErrConfig)
		_, err = admin.New(c).Break(t.Context(), "job", &admin.BreakOptions{Seen: node.MaxToken})
		locktest.WantErr(t, err, redlatch.ErrConfig)
		c.Close()
		_, err = admin.New(c).Break(context.Background(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrClosed)
	})
}

// offClock is a wall clock that is wrong by a fixed amount.
type offClock struct {
	start time.Time
	by    time.Duration
}

func (c offClock) Now() time.Time        { return time.Now().Add(c.by) }
func (c offClock) Uptime() time.Duration { return time.Since(c.start) }
