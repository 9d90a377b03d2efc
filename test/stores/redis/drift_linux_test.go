package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// driftingClock runs at a rate of its own.
type driftingClock struct {
	start time.Time
	rate  float64
}

func (c driftingClock) Now() time.Time { return time.Now() }
func (c driftingClock) Uptime() time.Duration {
	return time.Duration(c.rate * float64(time.Since(c.start)))
}

// TestDriftWithinTheMarginMakesNoSecondHolder has a holder whose clock is slow
// by half of what the margin covers, and one whose clock is fast.
func TestDriftWithinTheMarginMakesNoSecondHolder(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.995, 1.5} {
		servers := servertest.Redis(t, 3)
		addresses := servertest.Addresses(servers)
		opts := locktest.WithClock(quick, driftingClock{time.Now(), rate})
		holder, other := newClient(t, open(t, addresses...), opts), newClient(t, open(t, addresses...), quick)
		l := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: 2 * time.Second, NoKeepAlive: true})
		next := nextHolder(t, goLock(other, "job", redlatch.LockOptions{}), l)
		mustRelease(t, next)
	}
}

// TestDriftBeyondTheMarginCanMakeTwoHoldersAndTheTokenTellsThem violates an
// assumption of exclusion: the holder's clock runs at a quarter of the speed.
func TestDriftBeyondTheMarginCanMakeTwoHoldersAndTheTokenTellsThem(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	opts := locktest.WithClock(quick, driftingClock{time.Now(), 0.25})
	holder, other := newClient(t, open(t, addresses...), opts), newClient(t, open(t, addresses...), quick)
	l := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: 2 * time.Second, NoKeepAlive: true})
	next := mustLock(t, other, "job", redlatch.LockOptions{})
	if l.Remaining() <= 0 {
		t.Fatal("the slow holder has lost its lease: nothing is shown")
	}
	if next.Token() <= l.Token() {
		exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
	}
	staleIsRefused(t, servers[0], l, next)
	// Its next request to the servers reports it.
	err := l.Extend(context.Background())
	wantErr(t, err, redlatch.ErrLost)
	t.Log("who extends is told:", err)
}
