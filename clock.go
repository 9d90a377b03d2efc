package redlatch

import "time"

// Clock is a client's source of time. The zero Options use the system's clock;
// tests inject others.
//
// A Clock can also have a method Chance that returns a rand.Source of
// math/rand/v2. The client then draws its random values and delays from it.
// That is for simulations, which must be repeatable. Elsewhere values have to
// be unique.
type Clock interface {
	// Now is the wall clock, from which tokens are proposed. It may jump.
	Now() time.Time

	// Uptime is the time since some fixed moment. Leases are measured by it. It
	// never goes back, and it continues while the machine is suspended.
	Uptime() time.Duration
}
