//go:build unix

package redis_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// lineOf has clients wait in the queue of a name, each with a driver that
// counts.
func lineOf(t testing.TB, servers []*servertest.Server, name string, n int) (taps [][]*tap, waiting []<-chan got) {
	t.Helper()
	for i := range n {
		var mine []*tap
		for _, s := range servers {
			mine = append(mine, newTap(t, []string{"goredis", "rueidis"}[i%2], s))
		}
		c := newClient(t, tapped(servers, mine...), redlatch.Options{})
		taps = append(taps, mine)
		waiting = append(waiting, goLock(c, name, redlatch.LockOptions{}))
		eventually(t, patience, inLine(servers, name, i+1))
	}
	return taps, waiting
}

// asked returns how often each waiter has asked the first server.
func asked(taps [][]*tap) (n []int) {
	for _, mine := range taps {
		total := 0
		for _, count := range mine[0].counts() {
			total += count
		}
		n = append(n, total)
	}
	return n
}

// mostIn is how many requests a waiter of that rank may send in a time: the
// first two every 400 ms, the fifty behind them every 900 ms, less a random
// quarter. One more may fall on the edge.
func mostIn(rank int, d time.Duration) int {
	every := 400 * time.Millisecond
	if rank > 2 {
		every = 900 * time.Millisecond * 3 / 4
	}
	return int(d/every) + 1
}

// TestSideKeysOfALineExpireAndGoWithIt checks the keys that waiting writes.
func TestSideKeysOfALineExpireAndGoWithIt(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	holder := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{})
	ctx, giveUp := context.WithCancel(context.Background())
	_, waiting := lineOf(t, servers, "job", 3)
	quitter := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	quit := make(chan error, 1)
	go func() { _, err := quitter.Lock(ctx, "job", nil); quit <- err }()
	eventually(t, patience, inLine(servers, "job", 4))
	for _, s := range servers {
		for _, key := range []string{queueOf("job"), strings.Replace(queueOf("job"), "queue", "turn", 1)} {
			// A queue is renewed every 20 s at least, and so must outlive that.
			if ttl, _ := strconv.Atoi(s.Do("PTTL", key)); ttl < 60_000 || ttl > 90_000 {
				t.Errorf("%s has a time to live of %d ms, want 60 to 90 s", key, ttl)
			}
		}
	}
	// A waiter that gives up has left every queue when Lock returns, or right
	// after.
	giveUp()
	wantErr(t, <-quit, context.Canceled)
	eventually(t, patience, inLine(servers, "job", 3))
	handOver(t, lease, waiting, nil)
	eventually(t, undone, nothingLeft(servers, "job"))
}
