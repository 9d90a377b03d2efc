//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// clockFaults are the faults of the clocks of servers and clients. Those of
// clients are injected in code; see wallClock.
var clockFaults = []Family{
	{Name: "clock-jump", About: "set a server's wall clock forward or back, and right again", Beyond: true, clock: true, kinds: redisAlone, node: clockJump},
	{Name: "clock-drift", About: "have a server's clock run up to half a percent too fast or too slow", clock: true, kinds: redisAlone, mild: true, node: clockDrift},
	{Name: "client-clock", About: "set a client's wall clock, by up to an hour", client: clientClock},
}

// step sets a node's clock, and records a step forward: a step back only makes
// locks live longer.
func step(n *node, f *Fault, off time.Duration) {
	from, forward := now(), off > n.clock.Off()
	n.clock.Set(off, 0)
	if forward {
		f.Breaks = append(f.Breaks, Span{from, now()})
	}
}

func clockJump(w *nemesis, n *node, rng *rand.Rand) strike {
	// Small steps leave the node within the token window, where it continues to
	// grant; large ones put it outside.
	off := between(rng, 100*time.Millisecond, 3*time.Second)
	if rng.IntN(3) == 0 {
		off = between(rng, 3*time.Second, time.Minute)
	}
	word := "forward"
	if rng.IntN(2) == 0 {
		off, word = -off, "back"
	}
	return strike{detail: fmt.Sprintf("its clock is set %s by %v", word, off.Abs().Round(time.Millisecond)), lasts: between(rng, 200*time.Millisecond, 3*time.Second),
		apply: func(f *Fault) error { step(n, f, off); return nil },
		heal:  func(f *Fault) error { step(n, f, 0); return nil }}
}

func clockDrift(w *nemesis, n *node, rng *rand.Rand) strike {
	gain := between(rng, time.Millisecond, 5*time.Millisecond)
	// Towards the right time, so that it stays near it in the long run.
	if n.clock.Off() > 0 || n.clock.Off() == 0 && rng.IntN(2) == 0 {
		gain = -gain
	}
	return strike{detail: fmt.Sprintf("its clock gains %v a second", gain.Round(time.Microsecond)), lasts: between(rng, time.Second, 6*time.Second),
		apply: func(*Fault) error { n.clock.Slew(gain); return nil },
		heal:  func(*Fault) error { n.clock.Slew(0); return nil }}
}

// wrongClock is how wrong a client's clock is: by up to an hour, or by so little
// that servers take its tokens, though others' were higher.
func (b bounds) wrongClock(rng *rand.Rand) time.Duration {
	if rng.IntN(2) == 0 {
		return between(rng, -b.Window, b.Window)
	}
	return between(rng, -time.Hour, time.Hour)
}

func clientClock(w *nemesis, m *member, rng *rand.Rand) strike {
	off := w.bounds.wrongClock(rng)
	return strike{detail: fmt.Sprintf("its wall clock is set to be off by %v", off.Round(time.Millisecond)),
		apply: func(*Fault) error { return m.setClock(off) }}
}
