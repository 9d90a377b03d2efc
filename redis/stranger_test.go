//go:build unix

package redis_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
)

// strangers are ways in which somebody who knows nothing of our queue holds a
// lock.
var strangers = map[string]func(s *redistest.Server, ttl string){
	"plain": func(s *redistest.Server, ttl string) { s.Do("SET", "job", "20-random-bytes", "NX", "PX", ttl) },
	"hash": func(s *redistest.Server, ttl string) {
		s.Do("HSET", "job", "uuid:1", "1")
		s.Do("PEXPIRE", "job", ttl)
	},
}

// TestReleaseByAStrangerIsNoticedByTheHeadAlone has a stranger free the lock,
// which wakes nobody.
func TestReleaseByAStrangerIsNoticedByTheHeadAlone(t *testing.T) {
	t.Parallel()
	for name, take := range strangers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Start(t, 3)
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
					t.Errorf("number %d in line asked %d times in %v, want %d at the most", rank, n, took, most)
				}
			}
			// Renewing its place it would ask five times in two seconds.
			if n := after[0] - before[0]; n < 7 {
				t.Errorf("the head asked %d times in %v, want once in 200 ms", n, took)
			}

			for _, s := range servers {
				s.Do("DEL", "job")
			}
			start = time.Now()
			lease := mustGet(t, waiting[0], 200*time.Millisecond+2*slack)
			t.Logf("the head had the lock %v after it was free", time.Since(start))
			for _, in := range waiting[1:] {
				mustRelease(t, lease)
				lease = mustGet(t, in, 10*time.Second)
			}
			mustRelease(t, lease)
		})
	}
}

// TestExpiryOfAStrangersLockIsWaitedForToTheMoment has the lock run out at a
// moment at which nobody would ask otherwise: a random delay is far longer, and
// places are renewed every 400 ms.
func TestExpiryOfAStrangersLockIsWaitedForToTheMoment(t *testing.T) {
	t.Parallel()
	for name, take := range strangers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, 1)[0]
			best := time.Hour
			for range 4 {
				c := newClient(t, open(t, server.URL()), redlatch.Options{RetryDelay: 5 * time.Second})
				take(server, "60000")
				waiting := goLock(c, "job", redlatch.LockOptions{})
				eventually(t, 10*time.Second, inLine([]*redistest.Server{server}, "job", 1))
				server.Do("PEXPIRE", "job", "1000")
				end := time.Now().Add(time.Second)
				lease := mustGet(t, waiting, time.Second+400*time.Millisecond+slack)
				best = min(best, time.Since(end))
				mustRelease(t, lease)
			}
			t.Logf("the lock was taken %v after it ran out at the best", best)
			if best > 100*time.Millisecond {
				t.Errorf("the lock was taken %v after it ran out at the best", best)
			}
		})
	}
}
