package redlatch

import (
	"sync/atomic"
	"time"
)

// Clock is the time by which a client measures. The zero Options use the
// system's; tests inject others.
//
// A Clock that also has a method Chance, which returns a rand.Source of
// math/rand/v2, decides what else the client leaves to chance: values and delays.
// That is for simulations, which must come out the same each time; elsewhere
// values have to be unique.
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
	suspended atomic.Int64 // nanoseconds, since start
	looked    atomic.Int64 // when, on the monotonic clock, that was last found out
}

func newSystemClock() *systemClock {
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
