package runner_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestReleaseIsRepeatedUntilAConnectionIsFoundThatWorks has the connections to
// a minority go silent while a lock is held. Each try costs a time limit, so
// the first tries follow each other without a delay.
func TestReleaseIsRepeatedUntilAConnectionIsFoundThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, silent = 250 * time.Millisecond, 4
		links, c := locktest.New(t, 3, redlatch.Options{NodeTimeout: limit})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
		synctest.Wait()
		third, tries := links[2], 0
		third.Freeze()
		defer close(third.Frozen)
		third.Set(func(l *locktest.Link) {
			l.Hook = func(node.Request) {
				if tries++; tries == silent { // the next ones are on a new connection
					l.Set(func(l *locktest.Link) { l.Frozen = nil })
				}
			}
		})
		start := time.Now()
		must(t, l.Release(t.Context()))
		for third.Holder(t, "job") != "" && time.Since(start) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		locktest.WantTook(t, start, silent*limit, silent*limit+limit/10)
	})
}

// TestReleaseIsRepeatedWhenTheNodeAnswersAnother has a node come back after a
// while, when a release is repeated only about once a second.
func TestReleaseIsRepeatedWhenTheNodeAnswersAnother(t *testing.T) {
	for away := 5 * time.Second; away < 6500*time.Millisecond; away += 50 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			synctest.Wait()
			links[2].Cut()
			must(t, l.Release(t.Context()))
			time.Sleep(away)
			links[2].Mend()
			locktest.MustLock(t, c, "another", redlatch.LockOptions{})
			time.Sleep(100 * time.Millisecond)
			locktest.WantFree(t, links, "job")
		})
	}
}

// lockMany locks "job 0", "job 1" and so on.
func lockMany(t *testing.T, c *redlatch.Client, leases int) (held []*redlatch.Lease) {
	t.Helper()
	for i := range leases {
		held = append(held, locktest.MustLock(t, c, fmt.Sprint("job ", i), redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true}))
	}
	synctest.Wait()
	return held
}

// TestReleasesThatAreOwedGoTogether has a node come back when many releases to
// it are pending. It answers each in 100 ms.
func TestReleasesThatAreOwedGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 1000
		links, c := locktest.New(t, 3, redlatch.Options{})
		held := lockMany(t, c, leases)
		links[2].Cut()
		for _, l := range held {
			must(t, l.Release(t.Context()))
		}
		synctest.Wait()
		links[2].Set(func(l *locktest.Link) { l.Refuse, l.Out = nil, 100*time.Millisecond })
		time.Sleep(5 * time.Second)
		for i := range leases {
			locktest.WantFree(t, links, fmt.Sprint("job ", i))
		}
	})
}

// TestReleaseIsRepeatedThoughTooManyWaitForItsNode releases so many leases at once
// that a node which does not answer is not sent all of the releases. When it
// answers again it gets the others too.
func TestReleaseIsRepeatedThoughTooManyWaitForItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 60
		links, c := locktest.New(t, 3, redlatch.Options{})
		held := lockMany(t, c, leases)
		links[2].Freeze()
		before := links[2].Count(node.OpRelease)
		must(t, held[0].Release(t.Context()))
		time.Sleep(300 * time.Millisecond) // it is known to be silent
		for _, l := range held[1:] {
			must(t, l.Release(t.Context()))
		}
		if n := links[2].Count(node.OpRelease) - before; n >= leases {
			t.Errorf("the node was sent %d releases: this test shows nothing", n)
		}
		links[2].Thaw()
		time.Sleep(5 * time.Second)
		for i := range leases {
			locktest.WantFree(t, links, fmt.Sprint("job ", i))
		}
	})
}

// TestCloseSaysWhatItLeaves closes a client whose third node does not answer, or
// refuses every request. Close ends in time, and the log names the node and how many
// requests it has not answered.
func TestCloseSaysWhatItLeaves(t *testing.T) {
	for what, c := range map[string]struct {
		set   func(l *locktest.Link)
		takes time.Duration
		left  string
	}{
		"frozen":      {func(l *locktest.Link) { l.Frozen = make(chan struct{}) }, 2100 * time.Millisecond, "node=memory:3 requests=2"},
		"unreachable": {func(l *locktest.Link) { l.Refuse = locktest.ErrUnreachable }, 0, "node=memory:3 requests=2"},
		"well":        {func(*locktest.Link) {}, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			links, client := locktest.New(t, 3, redlatch.Options{NodeTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for _, name := range []string{"a", "b"} {
				locktest.MustLock(t, client, name, redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			}
			synctest.Wait()
			links[2].Set(c.set)
			start := time.Now()
			client.Close()
			if took := time.Since(start); took > c.takes {
				t.Errorf("%s: Close took %v, want at most %v", what, took, c.takes)
			}
			const says = "closed without an answer of a node"
			if text := log.String(); strings.Contains(text, says) != (c.left != "") || !strings.Contains(text, c.left) {
				t.Errorf("%s: the log says\n%s\nwant %q", what, text, c.left)
			}
			locktest.WantFree(t, links[:2], "a")
			locktest.WantFree(t, links[:2], "b")
		})
	}
}

// TestCloseSendsTheReleasesThatAJanitorOwes has nodes refuse every request for a while,
// so that releases wait for a later try, and closes the client when the nodes answer
// again.
func TestCloseSendsTheReleasesThatAJanitorOwes(t *testing.T) {
	const leases = 48
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{})
			held := lockMany(t, c, leases)
			refuse := func(err error) {
				links.Set(func(l *locktest.Link) { l.Refuse = err })
			}
			refuse(locktest.ErrUnreachable)
			for _, l := range held {
				if l.Release(t.Context()) == nil {
					t.Error("a release was confirmed: this test shows nothing")
				}
			}
			time.Sleep(700 * time.Millisecond)
			synctest.Wait()
			before := links[2].Count(node.OpRelease)
			if answers {
				refuse(nil)
			}
			start := time.Now()
			c.Close()
			if took := time.Since(start); took > 0 {
				t.Errorf("nodes answer: %v: Close took %v", answers, took)
			}
			if n := links[2].Count(node.OpRelease) - before; !answers && n != 1 {
				t.Errorf("a node that refuses was sent %d releases, want one try", n)
			}
			for i := range leases {
				if answers {
					locktest.WantFree(t, links, fmt.Sprint("job ", i))
				}
			}
		})
	}
}
