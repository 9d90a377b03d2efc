package redlatch_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

func TestHandleFreesTheLockInOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		a, b := locktest.NewClient(t, nodes, redlatch.Options{}), locktest.NewClient(t, nodes, redlatch.Options{})
		handle, err := locktest.MustLock(t, a, "job", redlatch.LockOptions{NoKeepAlive: true}).Detach()
		must(t, err)
		must(t, b.Release(t.Context(), handle))
		synctest.Wait()
		locktest.WantFree(t, links, "job")
		for _, l := range links {
			if n := l.Count(node.OpExtend); n > 0 {
				t.Errorf("%v was asked for %d extensions", l, n)
			}
		}
		// The second time it reports that there was nothing to free.
		locktest.WantErr(t, b.Release(t.Context(), handle), redlatch.ErrLost)
	})
}

// TestHandleThatIsReleasedLateOnANodeLeavesTheHolderNoQuorum releases a lock whose
// holder still extends it: on one node at once, on the second when that node can be
// reached again, and on the third never.
func TestHandleThatIsReleasedLateOnANodeLeavesTheHolderNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		lease := locktest.MustLock(t, locktest.NewClient(t, nodes, redlatch.Options{}), "job", redlatch.LockOptions{})
		synctest.Wait()
		var own []*locktest.Link
		for i, l := range links {
			own = append(own, locktest.NewLink(t, l.Node))
			own[i].Set(func(l *locktest.Link) {
				if i > 0 {
					l.Refuse = locktest.ErrUnreachable
				}
			})
		}
		b := locktest.NewClient(t, []redlatch.Node{own[0], own[1], own[2]}, redlatch.Options{})
		locktest.WantErr(t, b.Release(t.Context(), lease.Handle()), redlatch.ErrNoQuorum)
		time.Sleep(5 * time.Second) // the holder extends its lease, and has the first node repaired
		must(t, lease.Extend(t.Context()))
		synctest.Wait()
		if links[0].Count(node.OpRepair) == 0 {
			t.Fatal("the first node was sent no repair: this shows nothing")
		}
		own[1].Mend()
		time.Sleep(3 * time.Second)
		if holder := links[1].Holder(t, "job"); holder != "" {
			t.Fatalf("the release was not repeated: %s has the second node", holder)
		}
		locktest.WantErr(t, lease.Extend(t.Context()), redlatch.ErrLost)
	})
}

func TestHandleDoesNotFreeAnothersLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := memory.Nodes(3)
		a, b := locktest.NewClient(t, nodes, redlatch.Options{}), locktest.NewClient(t, nodes, redlatch.Options{})
		handle, err := locktest.MustLock(t, a, "job", redlatch.LockOptions{TTL: time.Second, NoKeepAlive: true}).Detach()
		must(t, err)
		time.Sleep(2 * time.Second)
		theirs := locktest.MustLock(t, b, "job", redlatch.LockOptions{})
		locktest.WantErr(t, a.Release(t.Context(), handle), redlatch.ErrLost)
		must(t, theirs.Extend(t.Context()))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		locktest.WantErr(t, a.Release(ended, handle), context.Canceled)
		a.Close()
		locktest.WantErr(t, a.Release(t.Context(), handle), redlatch.ErrClosed)
	})
}

func TestBadHandlesAreRefusedAndNotShown(t *testing.T) {
	c := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{})
	l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
	good := l.Handle()
	prefix, encoded, _ := strings.Cut(good, ".")
	plain, err := base64.RawURLEncoding.DecodeString(encoded)
	must(t, err)
	withToken := func(token string) string {
		text := strings.Replace(string(plain), l.Token().String(), token, 1)
		return prefix + "." + base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	for _, bad := range []string{"", "redlatch1.", "redlatch1.!!!", "redlatch2." + good[10:], good[:len(good)-4], "redlatch1.e30", "nonsense",
		good + "!", good[:len(good)-1], encoded, withToken(""), withToken(strings.Repeat("0", 20))} {
		_, err := c.Attach(t.Context(), bad)
		locktest.WantConfigError(t, err, "handle")
		for _, err := range []error{err, c.Release(t.Context(), bad)} {
			if err == nil || strings.Contains(err.Error(), good[20:40]) || !strings.Contains(err.Error(), "invalid handle") {
				t.Errorf("%q: the error is %v", bad, err)
			}
		}
	}
}

// wallClock is a clock whose wall time is off.
type wallClock struct {
	by     time.Duration
	booted time.Time
}

func clockOff(by time.Duration) wallClock { return wallClock{by, time.Now().Add(-time.Hour)} }

func (c wallClock) Now() time.Time        { return time.Now().Add(c.by) }
func (c wallClock) Uptime() time.Duration { return time.Since(c.booted) }

// TestHandleCountsTimeOnTheNodesClocks attaches a lease, or frees it, on a machine
// whose clock is off by 40 s, also against that of the machine that detached it.
func TestHandleCountsTimeOnTheNodesClocks(t *testing.T) {
	const keep = 20 * time.Second
	for _, from := range []time.Duration{0, -40 * time.Second} {
		for _, to := range []time.Duration{-40 * time.Second, 0, 40 * time.Second} {
			for _, free := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					_, nodes := locktest.NewLinks(t, 3)
					a := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{TTL: 2 * time.Second}, clockOff(from)))
					b := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{TTL: 2 * time.Second}, clockOff(to)))
					l := locktest.MustLock(t, a, "job", redlatch.LockOptions{Keep: keep})
					time.Sleep(time.Second)
					text, err := l.Detach()
					must(t, err)
					if free {
						err = b.Release(t.Context(), text)
					} else if l, err = b.Attach(t.Context(), text); err == nil {
						err = l.Release(t.Context())
					}
					if err != nil {
						t.Fatalf("from a clock off by %v to one off by %v: %v", from, to, err)
					}
					locktest.WantTakenFor(t, b, "job", keep-time.Second)
				})
			}
		}
	}
}

// TestMaxHoldSurvivesAHandle hands a lease on, also to a machine whose clock is
// off.
func TestMaxHoldSurvivesAHandle(t *testing.T) {
	const most = 5 * time.Second
	for _, off := range []time.Duration{-40 * time.Second, 0, 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := locktest.NewLinks(t, 3)
			a := locktest.NewClient(t, nodes, redlatch.Options{TTL: 2 * time.Second})
			b := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{TTL: 2 * time.Second}, clockOff(off)))
			began := time.Now()
			text, err := locktest.MustLock(t, a, "job", redlatch.LockOptions{MaxHold: most}).Detach()
			must(t, err)
			time.Sleep(time.Second)
			l, err := b.Attach(t.Context(), text)
			must(t, err)
			text = l.Handle()
			select {
			case <-l.Context().Done():
			case <-time.After(time.Minute): // it is held for too long
			}
			locktest.WantErr(t, l.Err(), redlatch.ErrLost, redlatch.ErrMaxHold)
			if held := time.Since(began); held < most-100*time.Millisecond || held > most+100*time.Millisecond {
				t.Errorf("a clock off by %v: held for %v, want %v", off, held, most)
			}
			_, err = b.Attach(t.Context(), text)
			locktest.WantErr(t, err, redlatch.ErrLost, redlatch.ErrMaxHold)
		})
	}
}
