//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
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

func TestWaitingCostsNothingButTheRenewalOfThePlace(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		const waiters, held = 10, 5 * time.Second
		servers := servertest.Redis(t, 1)
		holder := newClient(t, open(t, servers[0].URL()), redlatch.Options{})
		lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		taps, waiting := lineOf(t, servers, "job", waiters)

		before, start := asked(taps), time.Now()
		time.Sleep(held) // that nothing is sent shows in time alone
		after, took := asked(taps), time.Since(start)
		for i := range taps {
			rank, n := i+1, after[i]-before[i]
			most := mostIn(rank, took)
			if n > most {
				t.Errorf("number %d in line asked %d times in %v, want %d at the most", rank, n, took, most)
			}
			// A busy machine makes them slower, not silent: a head that does
			// not renew its place loses it after a second.
			if rank <= 2 && n < int(took/time.Second) {
				t.Errorf("number %d in line asked %d times in %v, and would lose its place", rank, n, took)
			}
		}
		handOver(t, lease, waiting, func(i int) {
			if l := taps[i][0].counts()["release"]; l != 0 {
				t.Errorf("number %d in line sent %d releases before it had the lock", i+1, l)
			}
		})
	})
}

// wakes counts the notifications that a server sends, from now on.
func wakes(t testing.TB, s *servertest.Server) (count func(kind byte) int) {
	t.Helper()
	client := goredisclient.NewClient(&goredisclient.Options{Addr: s.Addr()})
	t.Cleanup(func() { client.Close() })
	sub := client.PSubscribe(context.Background(), "redlatch:1:inbox:*")
	t.Cleanup(func() { sub.Close() })
	if _, err := sub.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	messages := sub.Channel(goredisclient.WithChannelSize(10_000))
	seen := map[byte]int{}
	return func(kind byte) int {
		// What the server published before this arrives before its answer.
		marker := fmt.Sprint("x", time.Now().UnixNano())
		s.Do("PUBLISH", "redlatch:1:inbox:marker", marker)
		for m := range messages {
			if m.Payload == marker {
				break
			}
			if m.Payload != "" { // else it was sent to find out whether one may be
				seen[m.Payload[0]]++
			}
		}
		return seen[kind]
	}
}

func TestReleaseWakesOneHoweverManyWait(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		const waiters = 20
		servers := servertest.Redis(t, 3)
		holder := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
		lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		_, waiting := lineOf(t, servers, "job", waiters)
		counts := make([]func(byte) int, len(servers))
		for i, s := range servers {
			counts[i] = wakes(t, s)
		}
		judged := 0
		for i := range waiters {
			var before [2]int
			for _, count := range counts {
				before[0] += count('t')
				before[1] += count('n')
			}
			start := time.Now()
			mustRelease(t, lease)
			_, lease = served(t, waiting)
			// It is held on a quorum; only replies of the other servers can be
			// outstanding.
			eventually(t, patience, func() error {
				for _, s := range servers {
					if n := s.Do("ZCARD", queueOf("job")); n != strconv.Itoa(waiters-1-i) {
						return fmt.Errorf("%s wait on a server, want %d", n, waiters-1-i)
					}
				}
				return nil
			})
			if time.Since(start) > node.TurnLease {
				continue // its notification expired on a busy machine, and the next was notified
			}
			judged++
			turns, near := -before[0], -before[1]
			for _, count := range counts {
				turns += count('t')
				near += count('n')
			}
			if turns != len(servers) {
				t.Errorf("release %d: %d were told that it is their turn, want one on each of %d servers", i+1, turns, len(servers))
			}
			if near > len(servers) {
				t.Errorf("release %d: %d were told that they are near, want one on each of %d servers at the most", i+1, near, len(servers))
			}
		}
		mustRelease(t, lease)
		if judged < waiters/4 {
			t.Errorf("only %d of %d hand-overs were quick enough to be judged", judged, waiters)
		}
	})
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
