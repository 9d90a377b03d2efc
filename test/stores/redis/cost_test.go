//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// TestPairAllocatesNoMoreThanItNeeds counts the allocations of a pair with package
// direct on one server: the attempt, the claim, its mutex, its value, the lease,
// and the keys and the reply of each request; for Lock also the local queue. On five
// servers it is more by the keys and replies of four, 16.
func TestPairAllocatesNoMoreThanItNeeds(t *testing.T) {
	servers := servertest.Redis(t, 6)
	program := filepath.Join(t.TempDir(), "allocations")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/allocations").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, most := range []struct{ servers, lock, try int }{{1, 10, 9}, {5, 26, 25}} {
		out, err := exec.Command(program, strings.Join(servertest.Addresses(servers[:most.servers]), ",")).CombinedOutput()
		servers = servers[most.servers:]
		var lock, try int
		if _, scan := fmt.Sscan(string(out), &lock, &try); err != nil || scan != nil {
			t.Fatalf("%v, %v\n%s", err, scan, out)
		}
		if lock > most.lock || try > most.try {
			t.Errorf("on %d servers Lock and Release take %d allocations, TryLock and Release %d, want at most %d and %d", most.servers, lock, try, most.lock, most.try)
		}
	}
}

// TestDoWithoutWaitingForItsReleaseTakesOneRoundTrip has a link of a millisecond
// each way. The two kinds of Do alternate, so that a busy machine disturbs both
// alike.
func TestDoWithoutWaitingForItsReleaseTakesOneRoundTrip(t *testing.T) {
	p := servertest.NewProxy(t, servertest.Redis(t, 1)[0])
	p.Set(servertest.Weather{Requests: servertest.Direction{Delay: time.Millisecond}, Replies: servertest.Direction{Delay: time.Millisecond}})
	nodes, err := direct.Nodes(p.URL())
	check.Must(t, err)
	c := newClient(t, nodes, redlatch.Options{})
	var times [2][]time.Duration
	for range 50 {
		for i, opts := range []redlatch.LockOptions{{}, {NoReleaseWait: true}} {
			start := time.Now()
			err := c.Do(t.Context(), "job", &opts, func(context.Context, *redlatch.Lease) error { return nil })
			times[i] = append(times[i], time.Since(start))
			check.Must(t, err)
			// The release was sent before, over the same connection.
			l, err := c.TryLock(t.Context(), "job", nil)
			check.Must(t, err)
			check.Must(t, l.Release(t.Context()))
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
