//go:build unix

package redis_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/internal/stall"
)

const (
	// patience is how long a test waits for what must happen, where the claim
	// is that it happens and not when. Only a failing test takes so long.
	patience = 60 * time.Second

	// undone is how long a test waits for a key or a place in line to be
	// cleaned up. It is shorter than longTTL, and than the 90 s that a queue is
	// kept: expiry cannot pass for a clean-up.
	undone = 25 * time.Second

	// longTTL is the TTL of the clients of newClient that have none of their own.
	longTTL = 30 * time.Second

	// starved is how late a timer of this process is on a machine that is too
	// busy to assert times on.
	starved = 30 * time.Millisecond
)

// timed runs a test that asserts times on real servers, and runs it again if it
// failed while the machine stood still: see stall.Retry. The servers are
// started inside.
func timed(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	redistest.Need(t) // it may skip, which the test itself may not
	stall.Retry(t, starved, func(once testing.TB) { test(timedTB{once, t}) })
}

// timedTB is one run of a timed test.
type timedTB struct {
	testing.TB
	whole *testing.T
}

// never fails a test for good, also a timed one that would be run again: for
// what must not happen however busy the machine is.
func never(t testing.TB, format string, args ...any) {
	t.Helper()
	if run, ok := t.(timedTB); ok {
		run.whole.Errorf(format, args...)
	}
	t.Fatalf(format, args...)
}

// eachDriverTimed runs a timed test with every adapter.
func eachDriverTimed(t *testing.T, test func(t testing.TB, nodes func(addresses ...string) []redlatch.Node)) {
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		timed(t, func(t testing.TB) { test(t, nodes) })
	})
}

// allow returns how long something may have taken that began at start: the
// bound, and four times what a timer of this process was late by meanwhile.
func allow(bound time.Duration, start time.Time) time.Duration {
	return bound + 4*stall.Longest(start)
}

// served waits until one of those who wait has the lock, and returns which one.
// One that was served before is nil. A waiter that answers its turn late is
// passed over, and the next one has the lock: to wait for the late one alone
// would be to wait for ever, since nobody releases meanwhile.
func served(t testing.TB, waiting []<-chan got) (int, *redlatch.Lease) {
	t.Helper()
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(time.After(patience))}}
	for _, in := range waiting {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(in)})
	}
	i, value, _ := reflect.Select(cases)
	if i == 0 {
		t.Fatalf("the lock was to be had, and none of those who wait had it within %v", patience)
	}
	g := value.Interface().(got)
	if g.err != nil {
		t.Fatal(g.err)
	}
	waiting[i-1] = nil
	return i - 1, g.lease
}

// handOver releases a lease and those of the waiters, one after the other, and
// returns the order in which they were served. Each is called with the number
// of a waiter that has the lock.
func handOver(t testing.TB, lease *redlatch.Lease, waiting []<-chan got, each func(i int)) (order []int) {
	t.Helper()
	waiting = append([]<-chan got(nil), waiting...)
	for range waiting {
		mustRelease(t, lease)
		var i int
		i, lease = served(t, waiting)
		order = append(order, i)
		if each != nil {
			each(i)
		}
	}
	mustRelease(t, lease)
	return order
}

// handOverAmong releases the lock of each of several contenders as it has it,
// and returns the order in which they had it, and keeps that of the last.
func handOverAmong(t testing.TB, among []*contender) (order []int) {
	t.Helper()
	seen := map[int]bool{}
	for len(order) < len(among) {
		if n := len(order); n > 0 {
			among[order[n-1]].release()
		}
		eventually(t, patience, func() error {
			for i, p := range among {
				if _, has := p.at(acquired); has && !seen[i] {
					seen[i] = true
					order = append(order, i)
					return nil
				}
			}
			return fmt.Errorf("the lock was to be had, and only %v of %d had it", order, len(among))
		})
	}
	return order
}
