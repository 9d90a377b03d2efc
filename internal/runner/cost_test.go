package runner_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/internal/test/race"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// counting is a node that grants everything and stores nothing, so that only
// the client is measured.
type counting struct{ *memory.Node }

func (counting) Do(context.Context, node.Request) (node.Reply, error) {
	return node.Reply{Status: node.Granted}, nil
}

func grantingNodes(n int) []redlatch.Node {
	nodes := memory.Nodes(n)
	for i := range nodes {
		nodes[i] = counting{nodes[i].(*memory.Node)}
	}
	return nodes
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func TestHeldLeaseCostsLittleAndNoGoroutine(t *testing.T) {
	const leases, most = 2_000, 2048
	for _, n := range []int{1, 5} {
		opts := locktest.Patient
		opts.MaxTTL = time.Hour
		c := locktest.NewClient(t, grantingNodes(n), opts)
		locktest.MustLock(t, c, "warm up", redlatch.LockOptions{})
		held := make([]*redlatch.Lease, leases)
		names := make([]string, leases)
		for i := range names {
			names[i] = fmt.Sprintf("lease number %08d", i)
		}
		goroutines, before := runtime.NumGoroutine(), heap()
		for i, name := range names {
			// No extension is due while it is measured, on a busy machine either.
			held[i] = locktest.MustLock(t, c, name, redlatch.LockOptions{TTL: time.Hour})
		}
		// A round ends when its slowest node has answered, a moment after the
		// last lock was returned, and those who sent it stay for a second.
		for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if each := (heap() - before) / leases; each > most {
			t.Errorf("N=%d: a held lease costs %d bytes, want at most %d", n, each, most)
		}
		if more := runtime.NumGoroutine() - goroutines; more > 0 {
			t.Errorf("N=%d: %d leases cost %d goroutines", n, leases, more)
		}
		runtime.KeepAlive(held)
		c.Close()
	}
}

// TestPairAllocatesLittle counts what a lock and its release allocate. The race detector
// empties pools.
func TestPairAllocatesLittle(t *testing.T) {
	c := locktest.NewClient(t, grantingNodes(5), locktest.Patient)
	if got := testing.AllocsPerRun(1000, func() { locktest.MustLock(t, c, "pair", redlatch.LockOptions{}).Release(t.Context()) }); got > 59 && !race.Enabled {
		t.Errorf("a pair on five nodes allocates %v times, want at most 59", got)
	}
}

// TestThousandsOfLeasesAreKeptByOneScheduler has nodes that answer in a
// millisecond, and leases that came at the same moment. Their extensions are spread.
// The goroutines that keep the leases grow with the extensions in flight, about ten
// at a time, not with the number of leases.
func TestThousandsOfLeasesAreKeptByOneScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 1000
		links, c := locktest.New(t, 3, redlatch.Options{})
		goroutines := runtime.NumGoroutine()
		held := make([]*redlatch.Lease, leases)
		first := make([]time.Time, leases)
		for i := range held {
			held[i] = locktest.MustLock(t, c, fmt.Sprint("lease ", i), redlatch.LockOptions{TTL: 12 * time.Second})
			first[i] = held[i].Deadline()
		}
		time.Sleep(2 * time.Second) // the goroutines that acquired them have ended
		links.Set(func(l *locktest.Link) { l.Out = time.Millisecond })
		// Until each has been extended once, sample the number of goroutines.
		most, extended, together := 0, 0, 0
		for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(1700 * time.Microsecond) {
			synctest.Wait() // else it depends on the machine how many have just been started
			most = max(most, runtime.NumGoroutine()-goroutines)
			now := links[0].Count(node.OpExtend)
			extended, together = now, max(together, now-extended)
		}
		if together > leases/50 {
			t.Errorf("%d of %d leases that came together were extended together", together, leases)
		}
		for i, l := range held {
			if err := l.Err(); err != nil {
				t.Fatalf("lease %d of %d is gone: %v", i, leases, err)
			}
			if l.Deadline().Sub(first[i]) <= time.Second {
				t.Fatalf("lease %d of %d was not extended", i, leases)
			}
		}
		// An extension has one goroutine, and two more for each of three nodes.
		if most > leases/10 {
			t.Errorf("keeping %d leases took %d goroutines at its busiest", leases, most)
		}
	})
}
