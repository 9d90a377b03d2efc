//go:build unix

package chaos

import (
	"math/rand/v2"
	"time"
)

// clientFaults are the faults of clients.
var clientFaults = []Family{
	{Name: "pause", About: "stop a client, a holder if there is one, past the end of its lease", holder: 2, client: pause},
	{Name: "client-kill", About: "kill -9 a client, and start another in its place", holder: 1, client: clientKill},
}

// pause makes stale writers: the client continues, and writes.
func pause(w *nemesis, m *member, rng *rand.Rand) strike {
	return strike{detail: "is paused", lasts: between(rng, w.bounds.MaxTTL/2, 2*w.bounds.MaxTTL),
		apply: func(*Fault) error { return m.freeze() },
		heal:  func(*Fault) error { return m.thaw() }}
}

func clientKill(_ *nemesis, m *member, rng *rand.Rand) strike {
	return strike{detail: "is killed, and replaced", lasts: between(rng, 0, time.Second),
		apply: func(*Fault) error { m.kill(); return nil },
		heal:  func(*Fault) error { return m.start() }}
}
