package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// ticker is a clock that may be off, run fast or slow, and be set.
type ticker struct {
	mu     sync.Mutex
	start  time.Time
	offset time.Duration
	ppm    int64
	until  time.Duration // when it stops running fast or slow; 0 for never
}

func newTicker(start time.Time, c Clock, until time.Duration) *ticker {
	return &ticker{start: start, offset: c.Offset, ppm: c.PPM, until: until}
}

// set moves the clock by d.
func (c *ticker) set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// correct sets the clock right, except for an offset.
func (c *ticker) correct(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset + time.Since(c.start) - c.elapsed()
}

// elapsed is how much time has passed, by this clock's rate.
func (c *ticker) elapsed() time.Duration {
	d := time.Since(c.start)
	uneven := d
	if c.until > 0 {
		uneven = min(d, c.until)
	}
	return d + time.Duration(int64(uneven)/1000*c.ppm/1000)
}

// Now is the wall clock.
func (c *ticker) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.start.Add(c.elapsed() + c.offset)
}

// clientClock is a client's clock, and its source of randomness.
type clientClock struct {
	*ticker
	dice dice
	last time.Duration
	n    uint64
}

// Uptime does not start at zero.
func (c *clientClock) Uptime() time.Duration { return time.Hour + c.elapsed() }

// RandSource is the source of the client's values and delays.
func (c *clientClock) RandSource() rand.Source { return c }

// Uint64 depends on the moment alone: what another goroutine has asked for before
// makes no difference.
func (c *clientClock) Uint64() uint64 {
	now := time.Since(c.start)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now != c.last {
		c.last, c.n = now, 0
	}
	c.n++
	return c.dice.roll(uint64(now), c.n)
}
