//go:build unix

package rowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/poll"
)

// A lock of the long time outlives that a server takes another one's place. The
// short one makes a short quarantine.
const short, long = 2 * time.Second, 10 * time.Second

// bounds are the options of the first client of nodes.
func bounds(most time.Duration) redlatch.Options {
	return redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: most}, NodeTimeout: 2 * time.Second, AssumeFresh: true}
}

// later are the options of a client that does not declare its nodes new.
func later(o redlatch.Options) redlatch.Options {
	o.AssumeFresh = false
	return o
}

func newClient(t testing.TB, opts redlatch.Options, nodes ...redlatch.Node) *redlatch.Client {
	t.Helper()
	return locktest.NewClient(t, nodes, opts)
}

// lock acquires a name, as soon as that is possible.
func lock(t testing.TB, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	var l *redlatch.Lease
	poll.Within(t, patience, func() (err error) {
		l, err = c.TryLock(context.Background(), name, &opts)
		return err
	})
	return l
}

func use(t testing.TB, c *redlatch.Client, name string) {
	t.Helper()
	if err := lock(t, c, name, redlatch.LockOptions{}).Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// lockFor acquires the name "job" for so long, and not longer.
func lockFor(t testing.TB, c *redlatch.Client, ttl time.Duration) *redlatch.Lease {
	t.Helper()
	return lock(t, c, "job", redlatch.LockOptions{TTL: ttl, NoKeepAlive: true})
}

// quarantined reports whether a client was refused by a quarantine.
func quarantined(err error) bool { return errors.Is(err, redlatch.ErrQuarantine) }

// whileHeld reports whether a client was refused while another had the lock.
func whileHeld(lease *redlatch.Lease) func(error) bool {
	return func(err error) bool {
		return lease.Remaining() > 0 && (quarantined(err) || errors.Is(err, redlatch.ErrHeld))
	}
}

// whenFree has a client ask until it is granted the lock of another one, which
// must be over then. Before that it must have been refused as is expected.
func whenFree(t testing.TB, c *redlatch.Client, lease *redlatch.Lease, expected func(error) bool) {
	t.Helper()
	refused := false
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		second, err := c.TryLock(context.Background(), "job", nil)
		if err != nil {
			refused = refused || expected(err)
			continue
		}
		if left := lease.Remaining(); left > 0 {
			exclusion.Never(t, "two holders: the first has %v left", left)
		}
		if !refused {
			t.Error("the client was never refused by a quarantine, or while the lock was held")
		}
		if second.Token() <= lease.Token() {
			exclusion.Never(t, "token %v after %v", second.Token(), lease.Token())
		}
		return
	}
	t.Error("the lock was never granted again")
}

// ready waits until every node is back in service.
func ready(t testing.TB, c *redlatch.Client) {
	t.Helper()
	poll.Within(t, patience, func() error {
		states := admin.New(c).Ready(context.Background())
		if slices.ContainsFunc(states, func(r admin.Readiness) bool { return !r.Ready }) {
			return fmt.Errorf("%+v", states)
		}
		return nil
	})
}
