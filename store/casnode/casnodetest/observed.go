package casnodetest

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
)

// observedClaims are those of a store without a clock.
var observedClaims = []claim{
	{name: "a store without a clock keeps fences", check: func(p *probe) {
		if seen := p.read(p.a, p.name("job")); !seen.KeepsFences || !seen.Now.IsZero() {
			p.Errorf("KeepsFences is %v, the clock shows %v", seen.KeepsFences, seen.Now)
		}
	}},
	{name: "the floor rises with a removal, and never falls", check: func(p *probe) {
		p.mark()
		for _, floor := range []casnode.Snapshot{{Floor: 2000}, {Floor: 1000}} {
			seen := p.insert("job")
			before := seen.Floor
			seen.Floor = max(before, floor.Floor)
			p.remove(seen)
			if after := p.read(p.b, p.name("job")).Floor; after != max(before, floor.Floor) {
				p.Errorf("the floor is %d, was %d, and was raised to %d", uint64(after), uint64(before), uint64(floor.Floor))
			}
		}
	}},
	// The row may have been there in between, and have had a higher fence.
	{name: "an insert is refused if the floor has risen", check: func(p *probe) {
		absent := p.read(p.a, p.name("job"))
		seen := p.insert("other")
		seen.Floor += 1000
		p.remove(seen)
		p.refused("though the floor has risen", absent, row(p.name("job"), "late"))
		p.has(p.b, p.put(p.name("job"), "one"))
	}},
}

// remove removes the row of a snapshot, and raises the floor to the snapshot's.
func (p *probe) remove(seen casnode.Snapshot) {
	p.Helper()
	s, can := p.a.(casnode.Sweeper)
	if !can {
		p.Fatalf("a store without a clock must be a casnode.Sweeper")
		return
	}
	p.done("Remove", s.Remove(p.ctx, seen, []casnode.Row{seen.Row}))
	p.has(p.b, casnode.Row{Name: seen.Row.Name})
}

// timerClaims are those of a store with timers, of which the shortest runs for so
// long.
func timerClaims(shortest time.Duration) []claim {
	runs := func(p *probe, s casnode.Store, name, id string) bool {
		p.Helper()
		return slices.Contains(p.read(s, name).Row.Timers, id)
	}
	// A timer is left for a row that there is.
	start := func(p *probe, name, id string, d time.Duration) {
		p.Helper()
		if name != casnode.MarkerName && p.read(p.a, name).Row.Version == "" {
			p.put(name, "one")
		}
		if done, err := p.a.(casnode.Timers).StartTimer(p.ctx, name, id, d); err != nil || !done {
			p.Fatalf("StartTimer: %v, %v", done, err)
		}
	}
	return []claim{
		{name: "a timer runs for as long as it must, and then is gone", check: func(p *probe) {
			d := max(shortest, 300*time.Millisecond)
			began := time.Now()
			start(p, p.name("job"), "timer1", d)
			for runs(p, p.b, p.name("job"), "timer1") {
				if time.Since(began) > d+p.patience {
					p.Fatalf("a timer for %v runs after %v", d, time.Since(began))
				}
				time.Sleep(5 * time.Millisecond)
			}
			if took := time.Since(began); took < d {
				p.Errorf("a timer for %v was gone after %v", d, took)
			}
		}},
		{name: "a timer runs though its client is closed", check: func(p *probe) {
			began := time.Now()
			start(p, p.name("job"), "timer1", 10*time.Second)
			p.a.Close()
			if ran := runs(p, p.b, p.name("job"), "timer1"); !ran && time.Since(began) < 10*time.Second {
				p.Errorf("the timer is gone")
			}
		}},
		{name: "a timer belongs to one row", check: func(p *probe) {
			p.mark()
			marker := p.prefix[:8]
			names := []string{p.name("job"), p.name("job/"), p.name("jo"), p.name("job\x00"), casnode.MarkerName}
			for i, name := range names {
				id := marker + string(rune('a'+i))
				start(p, name, id, time.Minute)
				for _, other := range names {
					if runs(p, p.b, other, id) != (other == name) {
						p.Errorf("the timer of %q is said to be one of %q: %v", name, other, other != name)
					}
				}
				if seen := p.read(p.b, p.name("job")); slices.Contains(seen.Marker.Timers, id) != (name == casnode.MarkerName) {
					p.Errorf("the marker beside a row has the timers %q", seen.Marker.Timers)
				}
			}
		}},
		{name: "timers are dropped one by one", check: func(p *probe) {
			start(p, p.name("job"), "timer1", time.Minute)
			start(p, p.name("job"), "timer2", time.Minute)
			p.done("DropTimers", p.b.(casnode.Timers).DropTimers(p.ctx, p.name("job"), []string{"timer1", "missing"}))
			if runs(p, p.a, p.name("job"), "timer1") || !runs(p, p.a, p.name("job"), "timer2") {
				p.Errorf("the timers are %q", p.read(p.a, p.name("job")).Row.Timers)
			}
		}},
		{name: "a row and its timers are of one moment", check: func(p *probe) {
			name := p.name("job")
			p.during(func() {
				for range 20 {
					id := row("", "").Version[:12]
					start(p, name, id, time.Minute)
					r := row(name, id)
					if !p.swap(p.a, p.read(p.a, name), r) {
						p.Errorf("Swap as it was read was refused")
					}
					if !p.swap(p.a, p.read(p.a, name), row(name, "none")) {
						p.Errorf("Swap as it was read was refused")
					}
					if err := p.a.(casnode.Timers).DropTimers(p.ctx, name, []string{id}); err != nil {
						p.Errorf("DropTimers: %v", err)
					}
				}
			}, func() bool {
				seen := p.read(p.b, name)
				if id := string(seen.Row.State); len(id) == 12 && !slices.Contains(seen.Row.Timers, id) {
					// It may have been read before the timer was dropped, and the timers
					// after it: then the row is another one now.
					if again := p.read(p.b, name); again.Row.Version == seen.Row.Version {
						p.Errorf("the row refers to a timer that is said not to run")
					}
				}
				return true
			})
		}},
	}
}
