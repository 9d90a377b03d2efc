package world

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestNoWalkBreaksAPromise has a visitor of the playground press buttons at random:
// there is never more than one holder, and in the end everybody is served.
func TestNoWalkBreaksAPromise(t *testing.T) {
	const seeds = 60 // a second; with fewer, few stale writes are refused
	disturbances := []Command{
		{Do: "pause"}, {Do: "resume"}, {Do: "cut"}, {Do: "mend"}, {Do: "stop"}, {Do: "start"}, {Do: "empty"},
		{Do: "clock-client", By: 7}, {Do: "clock-client", By: -10},
	}
	refused, quarantines := 0, 0
	for seed := range seeds {
		w := New(Options{Clients: 3 + seed%3, Busy: true, Seed: uint64(seed)})
		p := Page{world: w}
		for i := range w.Servers {
			p.do(Command{Do: "clock-server", Server: i + 1, By: -float64(seed%2) * Window.Seconds() / 4})
		}
		for r := rand.New(rand.NewPCG(uint64(seed), 2)); w.now < time.Minute; {
			p.do(Command{Do: "run", By: 1.5 * r.Float64()})
			c := disturbances[r.IntN(len(disturbances))]
			c.Client, c.Server = r.IntN(len(w.Clients)), 1+r.IntN(Servers)
			p.do(c)
		}
		for i := range w.Clients {
			p.do(Command{Do: "resume", Client: i})
			for n := range Servers {
				p.do(Command{Do: "start", Server: n + 1})
				p.do(Command{Do: "mend", Client: i, Server: n + 1})
			}
		}
		served, seen := map[string]bool{}, len(w.Resource.Writes)
		if !w.RunUntil(2*time.Minute, func() bool {
			for ; seen < len(w.Resource.Writes); seen++ {
				if wr := w.Resource.Writes[seen]; wr.Accepted {
					served[wr.By] = true
				}
			}
			return len(served) == len(w.Clients)
		}) {
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
