//go:build unix

package redis_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// slack is added to a limit for a machine that also does other work.
const slack = 500 * time.Millisecond

// crowdOf returns processes in the node queue. The first has the lock; each
// holds it until it is ordered to release it.
func crowdOf(t testing.TB, servers []*servertest.Server, n int, ttl time.Duration) []*contender {
	t.Helper()
	line := make([]*contender, n)
	for i := range line {
		line[i] = startContender(t, orders{
			Driver: []string{"goredis", "rueidis"}[i%2], Name: "job", TTL: ttl,
			Addresses: servertest.Addresses(servers),
		})
	}
	for i, p := range line {
		p.await(ready)
		p.ask(-1)
		if i == 0 {
			p.await(acquired)
			eventually(t, patience, heldOnAll(servers, "job"))
		}
	}
	eventually(t, patience, inLine(servers, "job", n-1))
	return line
}

// outOfTheWay sends a signal to every second waiter when it is the head of the
// queue, and returns how long each of those behind it waited after the release.
func outOfTheWay(t testing.TB, servers []*servertest.Server, line []*contender, sig syscall.Signal) (waits []time.Duration) {
	t.Helper()
	for i := 0; i+2 < len(line); i += 2 {
		line[i+1].Signal(sig)
		if sig == syscall.SIGKILL {
			line[i+1].Wait()
		}
		// A request that it has just sent is executed before the release. If it
		// were granted the lock, it would be a dead holder, which other tests
		// cover.
		time.Sleep(50 * time.Millisecond)
		line[i].release()
		eventually(t, patience, func() error {
			if _, has := line[i+2].at(acquired); has {
				return nil
			}
			return fmt.Errorf("number %d is not served; the first server says %q has it; it said:\n%s", i+2,
				servers[0].Do("GET", "job"), line[i+2].Said())
		})
		wait := line[i+2].await(acquired) - line[i].await(releasing)
		waits = append(waits, wait)
	}
	t.Logf("those behind waited %v", waits)
	return waits
}

func TestWaiterKilledAtTheHeadCostsTheOthersNextToNothing(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 3)
		line := crowdOf(t, servers, 7, 10*time.Second)
		best, start := time.Hour, time.Now()
		for _, wait := range outOfTheWay(t, servers, line, syscall.SIGKILL) {
			if over(t, wait, time.Second, start) {
				t.Errorf("after a waiter was killed the next one waited %v, want well under a second", wait)
			}
			best = min(best, wait)
		}
		// The server reports that nobody is subscribed. If it did not, the
		// place of the dead waiter would be kept for 300 ms each time.
		if over(t, best, 250*time.Millisecond, start) {
			t.Errorf("after a waiter was killed the next one waited %v at the best: the place of the dead one was kept", best)
		}
	})
}

func TestWaiterFrozenAtTheHeadCostsTheOthersUnderASecond(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 3)
		line := crowdOf(t, servers, 5, 10*time.Second)
		start := time.Now()
		// It is still subscribed, so its notification must expire, and the next
		// waiter must ask.
		for _, wait := range outOfTheWay(t, servers, line, syscall.SIGSTOP) {
			if over(t, wait, time.Second+slack, start) {
				t.Errorf("after a waiter was frozen the next one waited %v, want under a second", wait)
			}
		}
		// A frozen waiter is not forgotten: it returns to its old place.
		late := startContender(t, orders{Driver: "goredis", Name: "job", TTL: 10 * time.Second, Addresses: servertest.Addresses(servers)})
		late.await(ready)
		late.ask(-1)
		line[1].Signal(syscall.SIGCONT)
		line[3].Signal(syscall.SIGCONT)
		eventually(t, patience, inLine(servers, "job", 3))
		if order := handOverAmong(t, []*contender{line[4], line[1], line[3], late}); !slices.IsSorted(order) {
			stall.Busy(t, starved, start)
			t.Errorf("they were served in the order %v", order)
		}
	})
}

// TestDeadHolderAndDeadHeadDoNotStopALongLine kills the holder, whose release
// would have notified a waiter, and before it the head, which would have
// noticed. The next waiter arrived when the queue was long, and does not ask by
// itself for a long time.
func TestDeadHolderAndDeadHeadDoNotStopALongLine(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		const ttl = time.Second
		servers := servertest.Redis(t, 3)
		first := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
		lease := holdOnAll(t, first, servers, "job", redlatch.LockOptions{})
		_, waiting := lineOf(t, servers, "job", 20)
		var last []*contender
		for i := range 3 {
			p := startContender(t, orders{Driver: "goredis", Name: "job", TTL: ttl, Addresses: servertest.Addresses(servers)})
			p.await(ready)
			p.ask(-1)
			eventually(t, patience, inLine(servers, "job", 21+i))
			last = append(last, p)
		}
		// Before its inbox was open the last one chose a random time to ask
		// again. Once that is over, its place decides when it asks, and its
		// place is far back.
		time.Sleep(300 * time.Millisecond)
		last[1].Kill()
		handOver(t, lease, waiting, nil)
		deadline := last[0].await(validTill)
		last[0].await(acquired)
		start, killed := time.Now(), monotonic()
		last[0].Kill()
		next := last[2].await(acquired)
		if next < deadline {
			exclusion.Never(t, "the next one had the lock before the dead holder's time was over")
		}
		if after := next - killed; over(t, after, ttl+time.Second+slack, start) {
			t.Errorf("the next one had the lock %v after the holder died, with a TTL of %v", after, ttl)
		}
	})
}
