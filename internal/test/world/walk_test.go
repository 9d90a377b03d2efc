package world

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestNoWalkBreaksAPromise has everything go wrong that may, at random, as a
// visitor of the playground would do it: there is never more than one holder, and
// in the end everybody is served.
func TestNoWalkBreaksAPromise(t *testing.T) {
	const seeds = 60 // a second; with fewer, few stale writes are refused
	refused, quarantines := 0, 0
	for seed := range seeds {
		w := New(Options{Clients: 3 + seed%3, Busy: true, Seed: uint64(seed)})
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		for w.now < time.Minute {
			w.Run(time.Duration(r.IntN(1500)) * time.Millisecond)
			disturb(w, r)
		}
		settle(w)
		served, seen := map[string]bool{}, len(w.Resource.Writes)
		ok := w.RunUntil(2*time.Minute, func() bool {
			for ; seen < len(w.Resource.Writes); seen++ {
				if wr := w.Resource.Writes[seen]; wr.Accepted {
					served[wr.By] = true
				}
			}
			return len(served) == len(w.Clients)
		})
		if !ok {
			t.Errorf("seed %d: not everybody is served: %v", seed, served)
		}
		if len(w.broken) > 0 || len(w.beyond) > 0 || w.twice > 0 {
			t.Errorf("seed %d: broken %q, beyond %q, two holders %d times", seed, w.broken, w.beyond, w.twice)
		}
		for _, wr := range w.Resource.Writes {
			if !wr.Accepted {
				refused++
			}
		}
		for _, c := range w.Clients {
			quarantines += c.marks.count
		}
	}
	t.Logf("%d stale writes were refused, and %d servers quarantined", refused, quarantines)
	if refused == 0 || quarantines == 0 {
		t.Error("nothing went wrong: this shows nothing")
	}
}

// disturb does one thing that no promise excludes.
func disturb(w *World, r *rand.Rand) {
	c, s := w.Clients[r.IntN(len(w.Clients))], w.Servers[r.IntN(Servers)]
	switch r.IntN(9) {
	case 0, 1:
		if c.paused {
			c.Resume()
		} else {
			c.Pause()
		}
	case 2, 3:
		if c.links[s.Number-1].cut {
			c.Mend(s.Number)
		} else {
			c.Cut(s.Number)
		}
	case 4:
		s.RestartEmpty()
	case 5, 6:
		if s.down {
			s.Start()
		} else {
			s.Stop()
		}
	case 7:
		c.Skew(time.Duration(r.IntN(21)-10) * time.Second)
	case 8:
		if s.skew > -Window/4 {
			s.Skew(-Window / 4)
		}
	}
}

// settle ends every fault.
func settle(w *World) {
	for _, s := range w.Servers {
		s.Start()
	}
	for _, c := range w.Clients {
		c.Resume()
		for n := range Servers {
			c.Mend(n + 1)
		}
	}
}
