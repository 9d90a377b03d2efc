package redlatch

import "time"

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
