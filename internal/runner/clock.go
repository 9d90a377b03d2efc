package runner

import (
	"sync/atomic"
	"time"
)

// Clock is a client's source of time.
type Clock interface {
	// Now is the wall clock, from which tokens are proposed. It may jump.
	Now() time.Time

	// Uptime is the time since some fixed moment. Leases are measured by it. It
	// never goes back, and it continues while the machine is suspended.
	Uptime() time.Duration
}

// systemClock is Go's monotonic clock, which stops while the machine is
// suspended, plus the time of all suspensions.
type systemClock struct {
	start     time.Time
	base      time.Duration
	suspended atomic.Int64 // nanoseconds since start
	measured  atomic.Int64 // when suspended was last measured, on the monotonic clock
}

// NewSystemClock returns the clock of this machine.
func NewSystemClock() Clock {
	c := &systemClock{start: time.Now()}
	c.base = suspendedTime(c.start)
	return c
}

func (c *systemClock) Now() time.Time { return time.Now() }

func (c *systemClock) Uptime() time.Duration {
	awake := time.Since(c.start)
	// Measuring costs more than the rest of an uncontended lock, so it is done
	// once a millisecond. A suspension is noticed that much later.
	if last := c.measured.Load(); awake-time.Duration(last) >= time.Millisecond && c.measured.CompareAndSwap(last, int64(awake)) {
		c.measureSuspend()
	}
	return awake + time.Duration(c.suspended.Load())
}

// measureSuspend measures how long the machine has been suspended. A delay between two
// readings makes the result too small, never too large. So the largest result
// is the best, and using it keeps Uptime from going back.
func (c *systemClock) measureSuspend() {
	s := int64(suspendedTime(c.start) - c.base)
	for most := c.suspended.Load(); s > most; most = c.suspended.Load() {
		if c.suspended.CompareAndSwap(most, s) {
			return
		}
	}
}
