package casnodetest

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/store/casnode"
)

var rowClaims = []claim{
	{name: "a missing row has no version", check: func(p *probe) {
		p.has(p.a, casnode.Row{Name: p.name("missing")})
	}},
	{name: "a row is read as it was written, by every client", check: func(p *probe) {
		long := strings.Repeat("n", 1024-len(p.prefix))
		for _, name := range []string{"plain", "q'uo\"te`s\\", "nul\x00byte", "\xff\xfe", "Umläute 鎖", "a b\n\t", long} {
			for _, state := range []string{"\x01", every, strings.Repeat(every, 4096)} {
				r := p.put(p.name(name), state)
				p.has(p.a, r)
				p.has(p.b, r)
			}
		}
	}},
	{name: "names that differ in a byte are different rows", check: func(p *probe) {
		var all []casnode.Row
		for _, name := range []string{"job", "Job", "job ", "job\x00", " job", "jöb", "jo\u0308b", "jobs"} {
			all = append(all, p.put(p.name(name), name))
		}
		for _, r := range all {
			p.has(p.b, r)
		}
	}},
	{name: "the marker is a row", check: func(p *probe) {
		r := marker()
		if !p.swap(p.a, p.read(p.a, casnode.MarkerName), r) {
			p.Fatalf("Swap of the marker as it was read was refused")
		}
		seen := p.read(p.b, p.name("other"))
		if seen.Marker.Version != r.Version || string(seen.Marker.State) != string(r.State) {
			p.Errorf("with another row, the marker has version %q and %d bytes, want %q and %d", seen.Marker.Version, len(seen.Marker.State), r.Version, len(r.State))
		}
		p.has(p.b, r)
	}},
}

// every has all bytes.
var every = func() string {
	var b []byte
	for i := range 256 {
		b = append(b, byte(i))
	}
	return string(b)
}()

var swapClaims = []claim{
	{name: "a Swap is refused if the row has changed", check: func(p *probe) {
		name := p.name("job")
		p.put(name, "one")
		seen := p.read(p.a, name)
		p.put(name, "two")
		p.refused("though the row has changed", seen, row(name, "late"))
	}},
	{name: "a Swap is refused if there is a row meanwhile", check: func(p *probe) {
		seen := p.read(p.a, p.name("job"))
		p.put(p.name("job"), "one")
		p.refused("though there is a row", seen, row(p.name("job"), "late"))
	}},
	{name: "a Swap is refused if the marker has changed", check: func(p *probe) {
		for _, name := range []string{"new", "used"} {
			if name == "used" {
				p.put(p.name(name), "one")
			}
			seen := p.read(p.a, p.name(name))
			p.mark()
			p.refused("though the marker has changed", seen, row(p.name(name), "late"))
			seen = p.read(p.a, p.name(name))
			seen.Marker.Version = ""
			p.refused("though there is a marker", seen, row(p.name(name), "late"))
		}
	}},
	{name: "a Swap of the marker is refused if it has changed", check: func(p *probe) {
		seen := p.read(p.a, casnode.MarkerName)
		p.mark()
		p.refused("though the marker has changed", seen, marker())
	}},
	{name: "a Swap is refused by another server", check: func(p *probe) {
		p.put(p.name("used"), "one")
		for _, r := range []casnode.Row{row(p.name("new"), "late"), row(p.name("used"), "late"), marker()} {
			seen := p.read(p.a, r.Name)
			seen.Server += "0"
			p.refused("though the server is another one", seen, r)
		}
	}},
	{name: "of many Swaps at once one is done", check: func(p *probe) {
		name := p.name("job")
		for range 20 { // the first is an insert
			seen := p.read(p.a, name)
			var done atomic.Int32
			var won casnode.Row
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					s, r := p.a, row(name, "state")
					if i%2 == 0 {
						s = p.b
					}
					switch ok, _, err := s.Swap(p.ctx, seen, casnode.Write{Row: r}); {
					case err != nil:
						p.Errorf("Swap: %v", err)
					case ok && done.Add(1) == 1:
						won = r
					}
				})
			}
			all.Wait()
			if n := done.Load(); n != 1 {
				p.Fatalf("%d of 8 Swaps were done", n)
			}
			p.has(p.a, won)
		}
	}},
}

// insert writes a row and reads it.
func (p *probe) insert(name string) casnode.Snapshot {
	p.Helper()
	p.put(p.name(name), "one")
	return p.read(p.a, p.name(name))
}

// sweepClaims are those of a Sweeper.
var sweepClaims = []claim{
	{name: "a Swap is refused if the row is gone", check: func(p *probe) {
		s := p.a.(casnode.Sweeper)
		seen := p.insert("job")
		p.done("Remove", s.Remove(p.ctx, seen, []casnode.Row{seen.Row}))
		p.has(p.b, casnode.Row{Name: seen.Row.Name})
		p.refused("though the row is gone", seen, row(seen.Row.Name, "late"))
		p.put(seen.Row.Name, "one") // the same bytes as before
		p.refused("though the row was removed and written anew", seen, row(seen.Row.Name, "late"))
	}},
	{name: "Remove leaves what has changed, and what another server shows", check: func(p *probe) {
		s := p.a.(casnode.Sweeper)
		seen := p.insert("spent")
		changed := p.insert("changed").Row
		changed.Version += "0"
		elsewhere := seen
		elsewhere.Server += "0"
		p.done("Remove", s.Remove(p.ctx, elsewhere, []casnode.Row{seen.Row}))
		p.has(p.b, seen.Row)
		p.done("Remove", s.Remove(p.ctx, seen, []casnode.Row{seen.Row, changed, row(p.name("missing"), "")}))
		p.has(p.b, casnode.Row{Name: seen.Row.Name})
		if p.read(p.b, changed.Name).Row.Version == "" {
			p.Errorf("a row that has changed was removed")
		}
	}},
}

// stampClaims are those of a Stamper. The claims about Swap hold for a stamped one, too.
var stampClaims = []claim{
	{name: "a stamp is the time of the write", check: func(p *probe) {
		for _, name := range []string{"new", "used"} {
			for _, early := range []time.Duration{0, casnode.Span / 4, casnode.Span / 2} {
				if name == "used" {
					p.put(p.name(name), "one")
				}
				p.stamp(p.name(name), early)
				name += " again"
			}
		}
	}},
	{name: "a stamp is refused if the clock is not as expected", check: func(p *probe) {
		for _, name := range []string{"new", "used"} {
			if name == "used" {
				p.put(p.name(name), "one")
			}
			for _, off := range []time.Duration{-24 * time.Hour, -time.Second - casnode.Span, time.Minute, 24 * time.Hour} {
				seen := p.read(p.a, p.name(name))
				seen.Now = seen.Now.Add(off)
				p.refuse("though it is another time", seen, casnode.Write{Row: row(p.name(name), "late"), Stamped: true})
			}
		}
	}},
}

// stamp writes a row whose writer expects a time that is early, and checks its
// stamp. A machine that is busy may refuse some.
func (p *probe) stamp(name string, early time.Duration) {
	p.Helper()
	for range 100 {
		seen, r := p.read(p.a, name), row(name, "state")
		before := seen.Now
		seen.Now = before.Add(-early)
		done, _ := p.write(p.a, seen, casnode.Write{Row: r, Stamped: true})
		after := p.read(p.b, name)
		if !done {
			continue
		}
		state := string(after.Row.State)
		if len(state) != 8+len(r.State) || state[8:] != string(r.State) || after.Row.Version != r.Version {
			p.Fatalf("the row of %q has version %q and the state %q, want %q and 8 bytes before %q", name, after.Row.Version, state, r.Version, r.State)
		}
		late := time.Duration(binary.BigEndian.Uint64(after.Row.State)) * time.Microsecond
		if at := seen.Now.Add(late); at.Before(before) || at.After(after.Now) {
			p.Errorf("the stamp of %q is of %v, and it was written from %v to %v", name, at, before, after.Now)
		}
		return
	}
	p.Errorf("a stamped Swap of %q as it was read was refused again and again", name)
}

var scanClaims = []claim{
	{name: "Scan returns pages in the order of the bytes", check: func(p *probe) {
		p.mark()
		var want []string
		rows := map[string]casnode.Row{}
		for _, suffix := range []string{"a", "B", "b", "a\x00", "ä", "\xff", "aa", "10", "9", "job", "job/1"} {
			r := p.put(p.name(suffix), suffix)
			rows[r.Name] = r
			want = append(want, r.Name)
		}
		slices.Sort(want)
		for _, limit := range []int{1, 3, 100} {
			var got []string
			for after, more := p.prefix, true; more; {
				page, err := p.b.Scan(p.ctx, after, limit)
				if err != nil || len(page) > limit {
					p.Fatalf("Scan: %d rows of %d at most, %v", len(page), limit, err)
				}
				more = len(page) == limit
				for _, r := range page {
					after = r.Name
					if !strings.HasPrefix(r.Name, p.prefix) {
						more = false
						break
					}
					got = append(got, r.Name)
					if w := rows[r.Name]; w.Version != r.Version || string(w.State) != string(r.State) {
						p.Errorf("the row of %q is not the one that was written", r.Name)
					}
				}
			}
			if !slices.Equal(got, want) {
				p.Errorf("pages of %d rows: %q, want %q", limit, got, want)
			}
		}
	}},
	{name: "Scan returns all rows but the marker", check: func(p *probe) {
		p.mark()
		p.put(p.name("job"), "one")
		page, err := p.a.Scan(p.ctx, casnode.MarkerName, 1)
		if err != nil || len(page) != 1 || page[0].Name == casnode.MarkerName {
			p.Errorf("the first row is %+v, %v", page, err)
		}
	}},
}
