package redlatch

import (
	"sync/atomic"
	"time"
)

// Clock is the time by which a client measures. The zero Options use the
// system's; tests inject others.
type Clock interface {
	// Now is the wall clock, from which tokens are proposed. It may jump.
	Now() time.Time

	// Uptime is the time since some fixed moment, by which leases are
	// measured. It never goes back, and it runs on while the machine is
	// suspended.
	Uptime() time.Duration
}

// systemClock adds to Go's monotonic clock, which stands still while the
// machine is suspended, the time that it spent so.
type systemClock struct {
	start     time.Time
	base      time.Duration
	suspended atomic.Int64
}

func newSystemClock() *systemClock {
	c := &systemClock{start: time.Now()}
	c.base = suspendedTime(c.start)
	return c
}

func (c *systemClock) Now() time.Time { return time.Now() }

func (c *systemClock) Uptime() time.Duration {
	// The measured time in suspension can only be too small, when we were
	// held up between two readings; so the greatest is the best, and taking
	// it keeps Uptime from going back.
	s := int64(suspendedTime(c.start) - c.base)
	for {
		most := c.suspended.Load()
		if s <= most {
			s = most
			break
		}
		if c.suspended.CompareAndSwap(most, s) {
			break
		}
	}
	return time.Since(c.start) + time.Duration(s)
}
