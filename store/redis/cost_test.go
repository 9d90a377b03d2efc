//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// TestPairAllocatesNoMoreThanItNeeds counts the allocations of a pair with package
// direct on one server: the attempt, the claim, its mutex, its value, the lease,
// and the keys and the reply of each request; for Lock also the local queue.
func TestPairAllocatesNoMoreThanItNeeds(t *testing.T) {
	s := servertest.Redis(t, 1)[0]
	program := filepath.Join(t.TempDir(), "allocations")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/allocations").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, s.URL()).CombinedOutput()
	var lock, try int
	if _, scan := fmt.Sscan(string(out), &lock, &try); err != nil || scan != nil {
		t.Fatalf("%v, %v\n%s", err, scan, out)
	}
	if lock > 10 || try > 9 {
		t.Errorf("Lock and Release take %d allocations, TryLock and Release %d, want at most 10 and 9", lock, try)
	}
}

// TestDoWithoutWaitingForItsReleaseTakesOneRoundTrip has a link of a millisecond
// each way. The two kinds of Do alternate, so that a busy machine disturbs both
// alike.
func TestDoWithoutWaitingForItsReleaseTakesOneRoundTrip(t *testing.T) {
	p := servertest.NewProxy(t, servertest.Redis(t, 1)[0])
	p.Set(servertest.Weather{Requests: servertest.Direction{Delay: time.Millisecond}, Replies: servertest.Direction{Delay: time.Millisecond}})
	nodes, err := direct.Nodes(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, nodes, redlatch.Options{})
	var times [2][]time.Duration
	for range 50 {
		for i, opts := range []redlatch.LockOptions{{}, {NoReleaseWait: true}} {
			start := time.Now()
			err := c.Do(t.Context(), "job", &opts, func(context.Context, *redlatch.Lease) error { return nil })
			times[i] = append(times[i], time.Since(start))
			if err != nil {
				t.Fatal(err)
			}
			// The release was sent before, over the same connection.
			l, err := c.TryLock(t.Context(), "job", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	// The lower quartiles: a busy machine only makes some of them longer.
	if waits, not := times[0][12], times[1][12]; not*4 > waits*3 {
		t.Errorf("Do takes %v, and %v without waiting for its release; want about half", waits, not)
	} else {
		t.Logf("Do takes %v, and %v without waiting for its release: %.2f", waits, not, float64(not)/float64(waits))
	}
}

// BenchmarkGuard compares a client with the guard on to the same client with it
// off, on the same servers. The two alternate, so
// that other load of the machine disturbs both alike. It reports
//
//	pair-ratio    the median of an uncontended pair, on over off
//	rate-ratio    pairs a second of 64 goroutines on names of their own, on over off
//	script-ratio  the server's time for an acquire, on over off
//	script-µs, script-off-µs, set-µs  the times, and that of a plain SET NX PX
func BenchmarkGuard(b *testing.B) {
	for _, n := range []int{1, 5} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			servers := servertest.Redis(b, n)
			addresses := servertest.Addresses(servers)
			on := newClient(b, open(b, addresses...), redlatch.Options{Guard: redlatch.GuardOn})
			off := newClient(b, open(b, addresses...), redlatch.Options{Guard: redlatch.GuardOff})

			clients := []*redlatch.Client{on, off}
			var times [2][]time.Duration
			var rates [2][]float64
			for b.Loop() {
				for range 300 { // pair by pair
					for i, c := range clients {
						times[i] = append(times[i], pair(b, c))
					}
				}
			}
			for range 5 {
				for i, c := range clients {
					rates[i] = append(rates[i], rate(b, c, 64, 300*time.Millisecond))
				}
			}
			median := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2]) }
			best := func(r []float64) float64 { return slices.Max(r) }
			b.ReportMetric(median(times[0])/median(times[1]), "pair-ratio")
			b.ReportMetric(median(times[0])/1000, "pair-µs")
			b.ReportMetric(best(rates[0])/best(rates[1]), "rate-ratio")
			b.ReportMetric(best(rates[0]), "pairs/s")
			scripts := acquireTimes(b, servers[0], on, off)
			b.ReportMetric(scripts[0]/scripts[1], "script-ratio")
			b.ReportMetric(scripts[0], "script-µs")
			b.ReportMetric(scripts[1], "script-off-µs")
			b.ReportMetric(scripts[2], "set-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pair times an uncontended pair.
func pair(b *testing.B, c *redlatch.Client) time.Duration {
	b.Helper()
	start := time.Now()
	l, err := c.Lock(context.Background(), "pair", nil)
	if err == nil {
		err = l.Release(context.Background())
	}
	must(b, err)
	return time.Since(start)
}

// rate counts the pairs a second of several goroutines on names of their own.
func rate(b *testing.B, c *redlatch.Client, goroutines int, d time.Duration) float64 {
	b.Helper()
	var done atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		name := fmt.Sprint("own ", g)
		all.Go(func() {
			for time.Since(start) < d {
				l, err := c.Lock(context.Background(), name, nil)
				if err == nil {
					err = l.Release(context.Background())
				}
				if err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

var usecPerCall = regexp.MustCompile(`usec_per_call=([0-9.]+)`)

// evalTime returns the server's mean time for a command, in microseconds.
func evalTime(b *testing.B, s *servertest.Server, command string) float64 {
	b.Helper()
	stats := s.Do("INFO", "commandstats")
	m := regexp.MustCompile(`cmdstat_` + command + `:[^\n]*`).FindString(stats)
	f, err := strconv.ParseFloat(usecPerCall.FindStringSubmatch(m)[1], 64)
	must(b, err)
	return f
}

// acquireTimes returns the server's time for an acquire by each client, and for
// a plain SET NX PX, in microseconds: the least of several runs. The keys
// expire by themselves, so that only acquires are counted.
func acquireTimes(b *testing.B, s *servertest.Server, clients ...*redlatch.Client) []float64 {
	b.Helper()
	times := make([]float64, len(clients)+1)
	for try := range 7 {
		for i, c := range clients {
			s.Do("CONFIG", "RESETSTAT")
			for k := range 400 {
				name := fmt.Sprintf("run %d client %d name %d", try, i, k)
				if _, err := c.TryLock(context.Background(), name, &redlatch.LockOptions{NoKeepAlive: true, TTL: 100 * time.Millisecond}); err != nil {
					b.Fatal(err)
				}
			}
			if t := evalTime(b, s, "evalsha"); try == 0 || t < times[i] {
				times[i] = t
			}
		}
		s.Do("CONFIG", "RESETSTAT")
		for k := range 400 {
			s.Do("SET", fmt.Sprint("plain ", try, k), "0123456789abcdef0123456789abcdef", "NX", "PX", "100")
		}
		if t := evalTime(b, s, "set"); try == 0 || t < times[len(clients)] {
			times[len(clients)] = t
		}
	}
	return times
}
