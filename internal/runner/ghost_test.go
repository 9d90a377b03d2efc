package runner_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

var errRefused = errors.New("connection refused")

func TestCloseDuringAnAttemptLeavesNothingBehind(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, c := locktest.New(t, n, redlatch.Options{})
			links.Set(func(l *locktest.Link) { l.Out = 50 * time.Millisecond })
			done := make(chan error)
			go func() {
				_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 30 * time.Second})
				done <- err
			}()
			time.Sleep(10 * time.Millisecond)
			go c.Close()
			locktest.WantErr(t, <-done, redlatch.ErrClosed)
			time.Sleep(time.Second)
			locktest.WantFree(t, links, "job")
		})
	}
}

// slowHandler is a slow logger.
type slowHandler struct{ slog.Handler }

func (slowHandler) Enabled(context.Context, slog.Level) bool { return true }
func (slowHandler) Handle(context.Context, slog.Record) error {
	time.Sleep(2 * time.Second)
	return nil
}

func TestSlowLoggerDoesNotHoldUpTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{Logger: slog.New(slowHandler{})})
		first := locktest.MustLock(t, c, "first", redlatch.LockOptions{TTL: time.Second, NoKeepAlive: true})
		second := locktest.MustLock(t, c, "second", redlatch.LockOptions{TTL: 1500 * time.Millisecond, NoKeepAlive: true})
		<-first.Context().Done()
		<-second.Context().Done()
		if late := -second.Remaining(); late > 100*time.Millisecond {
			t.Errorf("the second lease ended %v late, while the first was being logged", late)
		}
		time.Sleep(10 * time.Second) // until it has all been logged
	})
}

func TestRecoveredNodeIsWaitedForWhereItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		links[0].Freeze()
		l := locktest.MustLock(t, c, "one", redlatch.LockOptions{})
		time.Sleep(time.Second) // node 1 is known to be silent
		l.Release(t.Context())
		links[0].Thaw()
		links[0].Set(func(l *locktest.Link) { l.Out = 20 * time.Millisecond })
		links[1].Set(func(l *locktest.Link) { l.Refuse = errRefused })
		if _, err := c.TryLock(t.Context(), "two", nil); err != nil {
			t.Errorf("nodes 1 and 3 are a quorum, and yet: %v", err)
		}
	})
}

// TestNodeThatIsAlwaysLastIsRepairedToo has one node answer after the others
// have decided every round.
func TestNodeThatIsAlwaysLastIsRepairedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		links[2].Set(func(l *locktest.Link) { l.Refuse = errRefused })
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 3 * time.Second})
		links[2].Set(func(l *locktest.Link) { l.Refuse, l.Back = nil, 20*time.Millisecond })
		time.Sleep(5 * time.Second)
		if links[2].Holder(t, "job") == "" {
			t.Error("the node that answers last never got the lock it missed")
		}
		l.Release(t.Context())
		time.Sleep(time.Second)
		locktest.WantFree(t, links, "job")
	})
}
