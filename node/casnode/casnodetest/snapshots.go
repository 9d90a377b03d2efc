package casnodetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

var snapshotClaims = []claim{
	{"all clients see one server and one clock", func(p *probe) {
		first, second, third := p.read(p.a, p.name("job")), p.read(p.b, p.name("job")), p.read(p.a, p.name("job"))
		if first.Server == "" || first.Server != second.Server || first.Server != third.Server {
			p.Errorf("the server is %q, %q and %q", first.Server, second.Server, third.Server)
		}
		// Two machines behind one identity would have two clocks.
		if first.Now.IsZero() || second.Now.Before(first.Now) || third.Now.Before(second.Now) {
			p.Errorf("the clock shows %v, %v and %v", first.Now, second.Now, third.Now)
		}
	}},
	{"Read shows what was written before it began", func(p *probe) {
		for i := range 50 {
			from, to := p.a, p.b
			if i%2 == 0 {
				from, to = to, from
			}
			r := row(p.name("job"), "state")
			if !p.swap(from, p.read(from, r.Name), r) {
				p.Fatalf("Swap as it was read was refused")
			}
			p.has(to, r)
			p.has(from, r)
		}
	}},
	{"a snapshot is of one moment", func(p *probe) {
		// The number of the row is that of the marker, or one more.
		name := p.name("job")
		put := func(name string, i int) {
			r := row(name, string(casnode.Unmarked()))
			r.Version = "V" + strconv.Itoa(i)
			if !p.swap(p.a, p.read(p.a, name), r) {
				p.Errorf("Swap as it was read was refused")
			}
		}
		put(name, 1)
		put(casnode.MarkerName, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 2; i < 50; i++ {
				put(name, i)
				put(casnode.MarkerName, i)
			}
		}()
		number := func(r casnode.Row) int {
			n, _ := strconv.Atoi(r.Version[min(1, len(r.Version)):])
			return n
		}
		for going := true; going; {
			select {
			case <-ended:
				going = false
			default:
			}
			seen := p.read(p.b, name)
			if r, m := number(seen.Row), number(seen.Marker); r != m && r != m+1 {
				p.Errorf("Read returned the row of %d with the marker of %d", r, m)
				going = false
			}
		}
		<-ended
		p.mark() // under a version that nobody knows
	}},
}

// prepareClaim is that of a Preparer.
var prepareClaim = claim{"a store that is prepared again keeps its rows", func(p *probe) {
	p.mark()
	r := p.put(p.name("job"), "one")
	before := p.read(p.a, r.Name)
	if err := p.b.(casnode.Preparer).Prepare(p.ctx); err != nil {
		p.Fatalf("Prepare: %v", err)
	}
	p.has(p.a, r)
	if after := p.read(p.a, r.Name); after.Marker.Version != before.Marker.Version || after.Server != before.Server {
		p.Errorf("Prepare changed the marker or the server")
	}
}}

// hearClaim is that of a Hearer.
var hearClaim = claim{"wakes arrive with the write, and only with it", func(p *probe) {
	ctx, cancel := context.WithCancel(p.ctx)
	ready, heard, ended := make(chan struct{}, 1), make(chan string, 100), make(chan error, 1)
	go func() {
		ended <- p.b.(casnode.Hearer).Hear(ctx, func() { ready <- struct{}{} }, func(wake string) { heard <- wake })
	}()
	defer cancel()
	select {
	case <-ready:
	case err := <-ended:
		p.Fatalf("Hear: %v", err)
	case <-time.After(p.patience):
		p.Fatalf("Hear is not ready")
	}
	// Others may use the store, too.
	next := func() string {
		for {
			select {
			case wake := <-heard:
				if len(wake) > len(p.prefix) && wake[:len(p.prefix)] == p.prefix {
					return wake[len(p.prefix):]
				}
			case <-time.After(p.patience):
				return "nothing"
			}
		}
	}
	old := p.read(p.a, p.name("job"))
	p.swap(p.a, old, row(p.name("job"), "one"), p.prefix+"first", p.prefix+"second")
	p.swap(p.a, old, row(p.name("job"), "two"), p.prefix+"refused")
	p.swap(p.b, p.read(p.b, p.name("job")), row(p.name("job"), "three"), p.prefix+"last")
	got := []string{next(), next(), next()}
	slices.Sort(got)
	if !slices.Equal(got, []string{"first", "last", "second"}) {
		p.Errorf("heard %q, want first, second and last", got)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(p.patience):
		p.Errorf("Hear goes on after its context has ended")
	}
}}

var callClaims = []claim{
	{"a cancelled call returns an error", func(p *probe) {
		r := p.put(p.name("job"), "one")
		seen := p.read(p.a, r.Name)
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		if _, err := p.a.Read(ctx, r.Name); err == nil {
			p.Errorf("Read returned no error")
		}
		if _, err := p.a.Scan(ctx, r.Name, 1); err == nil {
			p.Errorf("Scan returned no error")
		}
		switch done, err := p.a.Swap(ctx, seen, row(r.Name, "two"), nil); {
		case err == nil:
			p.Errorf("Swap returned %v and no error", done)
		case errors.Is(err, node.ErrUnsent):
			p.has(p.b, r)
		}
	}},
	{"a store that is closed returns errors", func(p *probe) {
		r := p.put(p.name("job"), "one")
		seen := p.read(p.a, r.Name)
		if err := p.a.Close(); err != nil {
			p.Errorf("Close: %v", err)
		}
		if _, err := p.a.Read(p.ctx, r.Name); err == nil {
			p.Errorf("Read returned no error")
		}
		if _, err := p.a.Scan(p.ctx, "", 1); err == nil {
			p.Errorf("Scan returned no error")
		}
		if _, err := p.a.Swap(p.ctx, seen, row(r.Name, "two"), nil); err == nil {
			p.Errorf("Swap returned no error")
		}
		p.has(p.b, r)
	}},
	{"the name of a store is the same for all clients", func(p *probe) {
		if p.a.String() == "" || p.a.String() != p.b.String() {
			p.Errorf("the names are %q and %q", p.a, p.b)
		}
	}},
}
