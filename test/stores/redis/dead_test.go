//go:build unix

package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
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

// outOfTheWay kills every second waiter when it is the head of the queue, and
// returns how long each of those behind it waited after the release.
func outOfTheWay(t testing.TB, servers []*servertest.Server, line []*contender) (waits []time.Duration) {
	t.Helper()
	for i := 0; i+2 < len(line); i += 2 {
		line[i+1].Kill()
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
		for _, wait := range outOfTheWay(t, servers, line) {
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
