//go:build unix

package redis_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

const (
	// patience is how long a test waits for an event if the claim is that it
	// happens, not when. Only a failing test takes so long.
	patience = 60 * time.Second

	// patient is how long the servers of a test may take to answer, unless it is about
	// that: on a busy machine, or a slow disk, one was silent for 3.5 s.
	patient = 10 * time.Second

	// undone is how long a test waits for a key or a place in the queue to be
	// cleaned up. It is shorter than longTTL, and than the 90 s that a queue is
	// kept: expiry cannot pass for a clean-up.
	undone = 25 * time.Second

	// longTTL is the TTL of the clients of newClient that have none of their own.
	longTTL = 30 * time.Second

	// slack is added to a limit for a machine that also does other work.
	slack = 500 * time.Millisecond

	// starved is how late a timer of this process is on a machine that is too
	// busy to assert times on.
	starved = 30 * time.Millisecond
)

// timed runs a test that asserts times on real servers. It is run again if it
// finds that it came too late to show anything: see stall.Retry. The servers are
// started inside.
func timed(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	servertest.Need(t)
	stall.Retry(t, test)
}

// eachDriverTimed runs a timed test with every adapter.
func eachDriverTimed(t *testing.T, test func(t testing.TB, nodes func(addresses ...string) []redlatch.Node)) {
	for name := range drivers {
		withDriver(t, name, func(t *testing.T, nodes func(...string) []redlatch.Node) {
			timed(t, func(t testing.TB) { test(t, nodes) })
		})
	}
}

// over reports whether something that began at start took too long: longer than
// the limit, and four times what a timer of this process was late by since then. On
// a machine that is too busy to assert times on, it ends the run.
func over(t testing.TB, took, limit time.Duration, start time.Time) bool {
	t.Helper()
	if took <= limit+4*stall.Longest(start) {
		return false
	}
	stall.Busy(t, starved, start)
	return true
}

// served waits until one of the waiters has the lock, and returns which one.
// One that was served before is nil. A waiter that answers its notification
// late is skipped, and the next one gets the lock. Waiting for the late one
// alone would never end, since nobody releases in the meantime.
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
// returns the order in which they were served. It calls each with the number of
// every waiter that has the lock.
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
