package casnodetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
)

// placeClaims are those of a Placer.
var placeClaims = []claim{
	{name: "places are in the order in which they were put, for all clients", check: func(p *probe) {
		p.lives("one", "two")
		var all []casnode.Place
		for i, waiter := range []string{"Z", "y", "x_3", "a-2", "A"} {
			// Others may come to other names, whatever they are.
			p.join(p.b, p.place("job"+strings.Repeat("\x00", i+1), "other", "two", 0))
			all = append(all, p.place("job", waiter, []string{"one", "two"}[i%2], int64(i+1)))
			seen := p.join([]casnode.Store{p.a, p.b}[i%2], all[i])
			if seen.Rank < i+1 {
				p.Errorf("the rank of place %d is %d", i+1, seen.Rank)
			}
			if len(seen.Places) > 0 {
				p.shows("Put", seen, all)
			}
			p.queue("job", all...)
		}
		for i, place := range all[:4] { // whatever its client knows
			p.rejoin([]casnode.Store{p.a, p.b}[i%2], place, i < 2)
		}
		p.queue("job", all...)
	}},
	{name: "all clients see the same order, whoever came first", check: func(p *probe) {
		p.lives("one")
		var all []casnode.Place
		for i, ticket := range []int64{1 << 60, 5, 5, 1, 5} {
			all = append(all, p.place("job", fmt.Sprint("waiter", 9-i), "one", ticket))
			p.join([]casnode.Store{p.a, p.b}[i%2], all[i])
		}
		one, other := p.places(p.a, "job"), p.places(p.b, "job")
		if !slices.Equal(one, other) || len(one) != len(all) {
			p.Errorf("the places are %v and %v", one, other)
		}
		p.queue("job", one...)
		if inOrder := slices.IsSortedFunc(one, func(p, q casnode.Place) int {
			return cmp.Or(cmp.Compare(p.Ticket, q.Ticket), strings.Compare(p.Waiter, q.Waiter))
		}); !inOrder && !p.h.Arrival {
			p.Errorf("the places are %v, which is not the order of tickets and waiters", one)
		}
	}},
	{name: "a place is stored as it was put, and is no row", check: func(p *probe) {
		p.lives("one")
		long := strings.Repeat("\xff", 1024-len(p.prefix))
		for i, name := range []string{"plain", "Plain", "q'uo\"te`s\\", "nul\x00byte", "\xff\xfe", "a b\n\t", "a b\n", "%", long} {
			here := p.place(name, strings.Repeat("Az_-9", 80), "one", int64(i)<<40)
			p.join(p.a, here)
			p.queue(name, here)
			p.has(p.b, casnode.Row{Name: p.name(name)})
		}
		if rows, err := p.a.Scan(p.ctx, p.prefix, 1); err != nil || len(rows) > 0 && strings.HasPrefix(rows[0].Name, p.prefix) {
			p.Errorf("Scan returns %v, %v", rows, err)
		}
		all := p.places(p.b, "")
		if n := len(slices.DeleteFunc(all, func(q casnode.Place) bool { return q.Process != p.process("one") })); n != 9 {
			p.Errorf("%d places of all names, want 9", n)
		}
	}},
	{name: "Drop removes one place", check: func(p *probe) {
		p.lives("one")
		first, second := p.place("job", "a", "one", 1), p.place("job", "A", "one", 2)
		other := p.place("other", "a", "one", 3)
		for _, here := range []casnode.Place{first, second, other} {
			p.join(p.a, here)
		}
		for range 2 { // the second time there is none
			seen, err := p.placer(p.a).Drop(p.ctx, first)
			p.done("Drop", err)
			p.shows("Drop", seen, []casnode.Place{second})
			p.queue("job", second)
		}
		p.queue("other", other)
	}},
	{name: "a write drops the place that goes with it, if it is done", check: func(p *probe) {
		p.lives("one", "two")
		own, next := p.place("job", "a", "one", 1), p.place("job", "b", "two", 2)
		for range 2 { // the first is an insert
			for _, stamped := range p.stamped() {
				_, err := p.placer(p.b).Drop(p.ctx, next)
				p.done("Drop", err)
				own.Ticket, next.Ticket = own.Ticket+2, next.Ticket+2
				p.join(p.a, own)
				old := p.read(p.a, own.Name)
				p.put(own.Name, "one")
				if _, present := p.write(p.a, old, casnode.Write{Row: row(own.Name, "late"), Drop: &own, Stamped: stamped}); present.Server != "" {
					p.shows("a Swap that is refused", present, []casnode.Place{own})
				}
				p.queue("job", own)
				seen := p.join(p.b, next)
				p.queue("job", own, next)
				for _, gone := range []bool{false, true} {
					w := casnode.Write{Row: row(own.Name, "two"), Drop: &own, Stamped: stamped}
					done, present := p.write(p.a, seen, w)
					for i := 0; !done && stamped && i < 100; i++ { // a busy machine may refuse some
						done, present = p.write(p.a, p.read(p.a, own.Name), w)
					}
					if !done {
						p.Fatalf("Swap was refused, though the place is there: %v", !gone)
					}
					p.shows("Swap", present, []casnode.Place{next})
					p.queue("job", next)
					seen = p.read(p.a, own.Name)
				}
			}
		}
	}},
	{name: "of a waiter that comes or leaves and a write one sees the other", check: crossings},
	{name: "Evict removes the places of one process for one name", check: func(p *probe) {
		p.lives("one", "two")
		first, second := p.place("job", "a", "one", 1), p.place("job", "b", "one", 2)
		third, other := p.place("job", "c", "two", 3), p.place("other", "a", "one", 4)
		for _, here := range []casnode.Place{first, second, third, other} {
			p.join(p.a, here)
		}
		p.done("Evict", p.placer(p.b).Evict(p.ctx, first.Name, first.Process))
		p.queue("job", third)
		p.queue("other", other)
		// Its owner does not know that.
		if seen := p.rejoin(p.a, first, true); len(seen.Places) != 2 || !slices.Contains(seen.Places, first) {
			p.Errorf("a place that was evicted is put again, and the places are %v", seen.Places)
		}
	}},
	{name: "the places of a process end with it", slow: true, check: func(p *probe) {
		const step = casnode.PlaceLease / 4
		p.lives("dead", "alive")
		dead, alive := p.place("job", "a", "dead", 1), p.place("job", "b", "alive", 2)
		p.join(p.a, dead)
		p.join(p.b, alive)
		p.a.Close() // it may show life by itself
		last, began := time.Now(), time.Now()
		for passed := time.Duration(0); ; passed += step {
			now := p.places(p.b, "job")
			if prompt := time.Since(last) < casnode.PlaceLease; prompt && !slices.Contains(now, alive) {
				p.Fatalf("a process that lives has no places")
			}
			if !slices.Contains(now, dead) && passed >= casnode.PlaceLease {
				break
			}
			if passed > casnode.PlaceLease && time.Since(began) > casnode.PlaceLease+p.patience {
				p.Fatalf("a process that is dead has places")
			}
			p.pass(step)
			before := time.Now()
			lived, err := p.placer(p.b).Live(p.ctx, alive.Process)
			if p.done("Live", err); !lived && time.Since(last) < casnode.PlaceLease {
				p.Errorf("a process that lives is said not to")
			}
			last = before
		}
		seen := p.read(p.b, alive.Name)
		p.shows("Read", seen, []casnode.Place{alive})
		p.done("Evict", p.placer(p.b).Evict(p.ctx, "", ""))
		if lived, err := p.placer(p.b).Live(p.ctx, dead.Process); lived || err != nil {
			p.Errorf("a process that was dead has lived: %v, %v", lived, err)
		}
		if now := p.places(p.b, "job"); !slices.Equal(now, []casnode.Place{alive}) {
			p.Errorf("places that were evicted are back: %v", now)
		}
	}},
}

// crossings lets a waiter come while a row is written, and leave while it is written
// again. If neither saw the other, a lock would be free, and its waiter asleep.
func crossings(p *probe) {
	p.lives("one")
	here := p.place("job", "a", "one", 1)
	seen := p.read(p.a, here.Name)
	stamped := p.stamped()
	began, took := time.Now(), time.Millisecond
	swaps := 0
	for i := 0; i < 400 && (i < 80 || time.Since(began) < p.patience/10); i++ {
		comes, r := i%2 == 0, row(here.Name, "state")
		var met casnode.Snapshot
		var err error
		var both sync.WaitGroup
		pause := time.Duration(rand.Int64N(int64(took)+1)) * time.Duration(i/8%2) // or both begin at once
		before := time.Now()
		w := casnode.Write{Row: r, Stamped: stamped[i/4%len(stamped)], Look: true}
		if !comes { // the row is kept for who leaves
			w.Wakes = []casnode.Wake{{Process: here.Process, Text: "1", Waiter: here.Waiter}}
		}
		both.Go(func() {
			if i%4 < 2 {
				time.Sleep(pause)
			}
			if comes {
				met, err = p.placer(p.b).Put(p.ctx, here, false)
			} else {
				met, err = p.placer(p.b).Drop(p.ctx, here)
			}
		})
		if i%4 >= 2 {
			time.Sleep(pause)
		}
		done, present, failed := p.a.Swap(p.ctx, seen, w)
		both.Wait()
		p.done("Put or Drop", err)
		p.done("Swap", failed)
		took = (7*took + time.Since(before) - pause) / 8
		if !done {
			seen = p.read(p.a, here.Name)
			continue
		}
		swaps++
		if slices.Contains(present.Places, here) != comes && met.Row.Version != r.Version {
			p.Fatalf("the places after a write are %v, and who came (%v) sees the row before it", present.Places, comes)
		}
		seen.Row, seen.Now, seen.Places = r, met.Now, met.Places
	}
	if swaps < 10 {
		p.Errorf("%d Swaps were done while a waiter came and left", swaps)
	}
}

func (p *probe) placer(s casnode.Store) casnode.Placer { return s.(casnode.Placer) }

func (p *probe) done(what string, err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// process returns a process of this probe.
func (p *probe) process(suffix string) string { return p.prefix[:16] + suffix }

// lives has processes show that they live: the first by a, the other one by b.
func (p *probe) lives(processes ...string) {
	p.Helper()
	for i, process := range processes {
		for range 2 {
			lived, err := p.placer([]casnode.Store{p.a, p.b}[i]).Live(p.ctx, p.process(process))
			if p.done("Live", err); lived {
				break
			}
		}
	}
}

func (p *probe) place(name, waiter, process string, ticket int64) casnode.Place {
	return casnode.Place{Name: p.name(name), Waiter: waiter, Process: p.process(process), Ticket: ticket}
}

// join puts a place.
func (p *probe) join(s casnode.Store, here casnode.Place) casnode.Snapshot {
	p.Helper()
	return p.rejoin(s, here, false)
}

// rejoin puts a place that was stored before, as its client says.
func (p *probe) rejoin(s casnode.Store, here casnode.Place, again bool) casnode.Snapshot {
	p.Helper()
	before := p.read(p.b, here.Name)
	seen, err := p.placer(s).Put(p.ctx, here, again)
	p.done("Put", err)
	p.ofPresent("Put", here.Name, before, seen, p.read(p.b, here.Name))
	return seen
}

// shows checks the first places.
func (p *probe) shows(what string, seen casnode.Snapshot, all []casnode.Place) {
	p.Helper()
	if first := all[:min(len(all), casnode.FirstPlaces)]; !slices.Equal(seen.Places, first) || seen.Server == "" {
		p.Errorf("%s returned the places %v, want %v", what, seen.Places, first)
	}
}

// queue checks the places of a name, as all clients see them.
func (p *probe) queue(name string, want ...casnode.Place) {
	p.Helper()
	for _, s := range []casnode.Store{p.b, p.a} {
		if got := p.places(s, name); !slices.Equal(got, want) {
			p.Errorf("the places are %v, want %v", got, want)
		}
		p.shows("Read", p.read(s, p.name(name)), want)
	}
}

func (p *probe) places(s casnode.Store, name string) []casnode.Place {
	p.Helper()
	if name != "" {
		name = p.name(name)
	}
	all, err := p.placer(s).Places(p.ctx, name)
	p.done("Places", err)
	return all
}

// stamped are the kinds of Swap of the store.
func (p *probe) stamped() []bool {
	if _, stamps := p.a.(casnode.Stamper); stamps {
		return []bool{false, true}
	}
	return []bool{false}
}

// pass lets the store's time pass.
func (p *probe) pass(d time.Duration) {
	if p.h.Advance != nil {
		p.h.Advance(d)
		return
	}
	time.Sleep(d)
}
