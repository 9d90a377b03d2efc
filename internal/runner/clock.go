package runner

import (
	"sync/atomic"
	"time"
)

// Clock is redlatch.Clock.
type Clock interface {
	Now() time.Time
	Uptime() time.Duration
}

// systemClock adds to Go's monotonic clock, which does not run while the
// machine is suspended, the time that it spent so.
type systemClock struct {
	start     time.Time
	base      time.Duration
	suspended atomic.Int64 // nanoseconds, since start
	looked    atomic.Int64 // when, on the monotonic clock, that was last found out
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
	// Finding out costs more than all the rest of an uncontended lock, so it
	// is done once a millisecond. A suspension is noticed so much later.
	if looked := c.looked.Load(); awake-time.Duration(looked) >= time.Millisecond && c.looked.CompareAndSwap(looked, int64(awake)) {
		c.look()
	}
	return awake + time.Duration(c.suspended.Load())
}

// look finds out how long the machine has been suspended. What is measured can
// only be too little, when we were held up between two readings; so the
// greatest is the best, and taking it keeps Uptime from going back.
func (c *systemClock) look() {
	s := int64(suspendedTime(c.start) - c.base)
	for most := c.suspended.Load(); s > most; most = c.suspended.Load() {
		if c.suspended.CompareAndSwap(most, s) {
			return
		}
	}
}
