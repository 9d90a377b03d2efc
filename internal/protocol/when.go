package protocol

import "time"

// Instant is a time on the client's monotonic clock.
type Instant = time.Duration

// When is an Instant that may be absent: a timer that is not set, a limit that
// nobody gave. Its zero value is absent.
type When struct {
	// next is the nanosecond after the time: 0 if it is absent. A claim has
	// many of these, and has to stay small.
	next Instant
}

// At returns a When that is not absent. No time is negative.
func At(t Instant) When { return When{t + 1} }

// IsSet reports whether there is a time at all.
func (w When) IsSet() bool { return w.next != 0 }

// Get returns the time; false if it is absent.
func (w When) Get() (Instant, bool) { return w.Or(0), w.IsSet() }

// Or returns the time, or t if it is absent.
func (w When) Or(t Instant) Instant {
	if w.IsSet() {
		return w.next - 1
	}
	return t
}

// Reached reports whether the time has come. An absent one never comes.
func (w When) Reached(now Instant) bool { return w.IsSet() && w.next <= now+1 }

// Before reports whether the time is earlier. An absent one is later than all
// others.
func (w When) Before(other When) bool {
	return w.IsSet() && (!other.IsSet() || w.next < other.next)
}
