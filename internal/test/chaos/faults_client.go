//go:build unix

package chaos

import (
	"math/rand/v2"
	"time"
)

// clientFaults are the faults of clients.
func clientFaults() []Family {
	return []Family{
		{Name: "pause", About: "stop a client, a holder if there is one, past the end of its lease", plan: pause},
		{Name: "client-kill", About: "kill -9 a client, and start another in its place", plan: clientKill},
	}
}

// pause makes stale writers: the client continues, and writes.
func pause(w *world, rng *rand.Rand, _ []ServerKind) *strike {
	m := w.freeMember(rng, true)
	if m == nil {
		return nil
	}
	return &strike{member: m, detail: "is paused", lasts: between(rng, w.bounds.MaxTTL/2, 2*w.bounds.MaxTTL),
		apply: func(*Fault) error { return m.freeze() },
		heal:  func(*Fault) error { return m.thaw() }}
}

func clientKill(w *world, rng *rand.Rand, _ []ServerKind) *strike {
	m := w.freeMember(rng, rng.IntN(2) == 0)
	if m == nil {
		return nil
	}
	return &strike{member: m, detail: "is killed, and replaced", lasts: between(rng, 0, time.Second),
		apply: func(*Fault) error { m.kill(); return nil },
		heal:  func(*Fault) error { return m.start() }}
}
