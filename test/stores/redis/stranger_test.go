//go:build unix

package redis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// strangers are ways in which a foreign client, which does not know our queue,
// holds a lock.
var strangers = map[string]func(s *servertest.Server, ttl string){
	"plain": func(s *servertest.Server, ttl string) { s.Do("SET", "job", "20-random-bytes", "NX", "PX", ttl) },
	"hash": func(s *servertest.Server, ttl string) {
		s.Do("HSET", "job", "uuid:1", "1")
		s.Do("PEXPIRE", "job", ttl)
	},
}

// TestReleaseByAStrangerIsNoticedByTheHeadAlone has a foreign client free the
// lock, which notifies nobody.
func TestReleaseByAStrangerIsNoticedByTheHeadAlone(t *testing.T) {
	t.Parallel()
	for name, take := range strangers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timed(t, func(t testing.TB) {
				servers := servertest.Redis(t, 3)
				for _, s := range servers {
					take(s, "60000")
				}
				taps, waiting := lineOf(t, servers, "job", 5)

				before, start := asked(taps), time.Now()
				time.Sleep(2 * time.Second) // that the others are quiet shows in time alone
				after, took := asked(taps), time.Since(start)
				for i := range taps {
					rank, n := i+1, after[i]-before[i]
					most := mostIn(rank, took)
					if rank == 1 {
						most = int(took/(40*time.Millisecond)) + 1 // RetryDelay/5
					}
					if n > most {
						stall.Busy(t, starved, start) // it may have lost its place
						t.Errorf("number %d in line asked %d times in %v, want %d at the most", rank, n, took, most)
					}
				}
				// If it renewed its place, it would ask five times in two
				// seconds.
				if n := after[0] - before[0]; n < 7 {
					stall.Busy(t, starved, start)
					t.Errorf("the head asked %d times in %v, want once in 200 ms", n, took)
				}

				for _, s := range servers {
					s.Do("DEL", "job")
				}
				start = time.Now()
				head, lease := served(t, waiting)
				wait := time.Since(start)
				t.Logf("number %d in line had the lock %v after it was free", head+1, wait)
				if over(t, wait, 200*time.Millisecond+2*slack, start) {
					t.Errorf("nobody had the lock until %v after it was free", wait)
				}
				if head != 0 {
					stall.Busy(t, starved, start)
					t.Errorf("number %d in line was served first", head+1)
				}
				handOver(t, lease, slices.DeleteFunc(waiting, func(in <-chan got) bool { return in == nil }), nil)
			})
		})
	}
}

// TestExpiryOfAStrangersLockIsWaitedForToTheMoment has the lock expire at a
// moment at which nobody would ask otherwise: a random delay is far longer, and
// places are renewed every 400 ms.
func TestExpiryOfAStrangersLockIsWaitedForToTheMoment(t *testing.T) {
	t.Parallel()
	for name, take := range strangers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timed(t, func(t testing.TB) {
				server := servertest.Redis(t, 1)[0]
				best, start := time.Hour, time.Now()
				for range 4 {
					c := newClient(t, open(t, server.URL()), redlatch.Options{RetryDelay: 5 * time.Second})
					take(server, "60000")
					waiting := goLock(c, "job", redlatch.LockOptions{})
					eventually(t, patience, inLine([]*servertest.Server{server}, "job", 1))
					server.Do("PEXPIRE", "job", "1000")
					end := time.Now().Add(time.Second)
					lease := mustGet(t, waiting, patience)
					after := time.Since(end)
					if over(t, after, 400*time.Millisecond+slack, start) {
						t.Errorf("the lock was taken %v after it ran out", after)
					}
					best = min(best, after)
					mustRelease(t, lease)
				}
				t.Logf("the lock was taken %v after it ran out at the best", best)
				if over(t, best, 100*time.Millisecond, start) {
					t.Errorf("the lock was taken %v after it ran out at the best", best)
				}
			})
		})
	}
}
