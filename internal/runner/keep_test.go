package runner_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

func TestKeepKeepsTheLockTakenAfterTheRelease(t *testing.T) {
	const keep = 20 * time.Second
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			_, c := locktest.New(t, n, redlatch.Options{TTL: 2 * time.Second})
			// Released at once.
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{Keep: keep})
			token := l.Token()
			must(t, l.Release(t.Context()))
			locktest.WantErr(t, l.Err(), redlatch.ErrReleased)
			_, err := c.TryLock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			locktest.WantTakenFor(t, c, "job", keep)

			// Held for longer than it is kept, and extended meanwhile.
			l = locktest.MustLock(t, c, "job", redlatch.LockOptions{Keep: keep})
			if l.Token() <= token {
				exclusion.Never(t, "token %d after %d", l.Token(), token)
			}
			time.Sleep(keep + time.Second)
			must(t, l.Release(t.Context()))
			locktest.WantTakenFor(t, c, "job", 0)

			// Extensions do not shorten it.
			l = locktest.MustLock(t, c, "job", redlatch.LockOptions{Keep: keep})
			time.Sleep(5 * time.Second)
			must(t, l.Release(t.Context()))
			locktest.WantTakenFor(t, c, "job", keep-5*time.Second)
		})
	}
}

func TestKeepOutlivesACrashAndALoss(t *testing.T) {
	const keep = 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 2, 3, redlatch.Options{TTL: 2 * time.Second})
		l := locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{Keep: keep, NoKeepAlive: true})
		time.Sleep(3 * time.Second)
		locktest.WantErr(t, l.Err(), redlatch.ErrLost) // and it was cleaned up
		locktest.WantTakenFor(t, hosts[1].Client, "job", keep-3*time.Second)
	})
}

func TestAttemptThatFailsKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		links[1].Take(t, "job", "stray", time.Second)
		links[2].Take(t, "job", "stray", time.Second)
		_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{Keep: 20 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		time.Sleep(time.Second)
		locktest.WantTakenFor(t, c, "job", 0)
		synctest.Wait()
		locktest.WantFree(t, links, "job")
	})
}
