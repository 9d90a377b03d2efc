package casnodetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

var snapshotClaims = []claim{
	{name: "all clients see one server", check: func(p *probe) {
		first, second, third := p.read(p.a, p.name("job")), p.read(p.b, p.name("job")), p.read(p.a, p.name("job"))
		if first.Server == "" || first.Server != second.Server || first.Server != third.Server {
			p.Errorf("the server is %q, %q and %q", first.Server, second.Server, third.Server)
		}
	}},
	{name: "Read shows what was written before it began", check: func(p *probe) {
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
	{name: "a snapshot is of one moment", check: func(p *probe) {
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
		number := func(r casnode.Row) int {
			n, _ := strconv.Atoi(r.Version[min(1, len(r.Version)):])
			return n
		}
		p.during(func() {
			for i := 2; i < 50; i++ {
				put(name, i)
				put(casnode.MarkerName, i)
			}
		}, func() bool {
			seen := p.read(p.b, name)
			r, m := number(seen.Row), number(seen.Marker)
			if r != m && r != m+1 {
				p.Errorf("Read returned the row of %d with the marker of %d", r, m)
			}
			return r == m || r == m+1
		})
		p.mark() // under a version that nobody knows
	}},
}

// during calls look again and again, as long as it returns true, until others has
// returned.
func (p *probe) during(others func(), look func() bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		others()
	}()
	defer func() { <-ended }()
	for {
		select {
		case <-ended:
			look()
			return
		default:
		}
		if !look() {
			return
		}
	}
}

// clockClaims are those of a store with a clock.
var clockClaims = []claim{
	{name: "all clients see one clock", check: func(p *probe) {
		first, second, third := p.read(p.a, p.name("job")), p.read(p.b, p.name("job")), p.read(p.a, p.name("job"))
		// Two machines behind one identity would have two clocks.
		if first.Now.IsZero() || second.Now.Before(first.Now) || third.Now.Before(second.Now) {
			p.Errorf("the clock shows %v, %v and %v", first.Now, second.Now, third.Now)
		}
	}},
	{name: "the clock counts microseconds", check: func(p *probe) {
		first := p.read(p.a, p.name("job")).Now
		moves, coarse := false, true
		for range 20 {
			time.Sleep(time.Millisecond)
			now := p.read(p.a, p.name("job")).Now
			if now.Nanosecond()%1000 != 0 {
				p.Fatalf("the clock shows %v: it must be truncated to microseconds", now)
			}
			moves = moves || !now.Equal(first)
			coarse = coarse && now.Nanosecond()%1_000_000 == 0
		}
		if moves && coarse {
			p.Errorf("the clock counts milliseconds")
		}
	}},
}

// apartClaim is about two servers.
var apartClaim = claim{stores: apart, name: "two servers have two identities and two names", check: func(p *probe) {
	name := p.name("job")
	if one, two := p.read(p.a, name).Server, p.read(p.b, name).Server; one == two {
		p.Errorf("the identity of both servers is %q", one)
	}
	if p.a.String() == p.b.String() {
		p.Errorf("the name of both stores is %q", p.a)
	}
}}

// prepareClaims are those of a Preparer.
var prepareClaims = []claim{
	{name: "a store that is prepared again keeps its rows", check: func(p *probe) {
		p.mark()
		r := p.put(p.name("job"), "one")
		before := p.read(p.a, r.Name)
		p.prepare(p.b)
		p.has(p.a, r)
		if after := p.read(p.a, r.Name); after.Marker.Version != before.Marker.Version || after.Server != before.Server {
			p.Errorf("Prepare changed the marker or the server")
		}
	}},
	{stores: unprepared, name: "a store that is not prepared returns ErrUnprepared", check: func(p *probe) {
		if _, err := p.a.Read(p.ctx, p.name("job")); !errors.Is(err, casnode.ErrUnprepared) {
			p.Errorf("Read returned %v", err)
		}
		if _, err := p.a.Scan(p.ctx, "", 1); !errors.Is(err, casnode.ErrUnprepared) {
			p.Errorf("Scan returned %v", err)
		}
	}},
	{stores: unprepared, name: "a store may be prepared by many at once", check: func(p *probe) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { p.prepare(p.a) })
			all.Go(func() { p.prepare(p.b) })
		}
		all.Wait()
		p.has(p.b, p.put(p.name("job"), "one"))
	}},
}

// hearing is the process that hears.
func (p *probe) hearing() string { return p.prefix[:len(p.prefix)-1] }

// wakes returns wakes for it.
func (p *probe) wakes(texts ...string) (all []casnode.Wake) {
	for _, text := range texts {
		all = append(all, casnode.Wake{Process: p.hearing(), Text: p.prefix + text})
	}
	return all
}

// hear runs Hear, and returns what it will return.
func (p *probe) hear(ctx context.Context, s casnode.Store, ready func(), heard func(string)) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.(casnode.Hearer).Hear(ctx, p.hearing(), ready, heard) }()
	return ended
}

var hearClaims = []claim{
	{name: "wakes arrive with the write, and only with it", check: wakesArrive},
	{name: "Hear of a store that is closed returns an error", check: func(p *probe) {
		p.b.Close()
		ended := p.hear(p.ctx, p.b, func() { p.Errorf("Hear is ready") }, func(string) {})
		select {
		case err := <-ended:
			if err == nil {
				p.Errorf("Hear returned no error")
			}
		case <-time.After(p.patience):
			p.Errorf("Hear goes on")
		}
	}},
}

func wakesArrive(p *probe) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	ready, heard := make(chan struct{}), make(chan string, 100)
	var once sync.Once
	ended := p.hear(ctx, p.b, func() {
		once.Do(func() {
			// From now on none is missed, and Hear has not gone on yet.
			seen, err := p.a.Read(ctx, p.name("early"))
			if err == nil {
				_, _, err = p.a.Swap(ctx, seen, casnode.Write{Row: row(p.name("early"), "one"), Wakes: p.wakes("early")})
			}
			if err != nil {
				p.Errorf("a write while Hear is getting ready: %v", err)
			}
			close(ready)
		})
	}, func(wake string) { heard <- wake })
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
	long := strings.Repeat("+", 2000-len(p.prefix))
	p.write(p.a, old, casnode.Write{Row: row(p.name("job"), "one"), Wakes: p.wakes("first", "second", long)})
	p.write(p.a, old, casnode.Write{Row: row(p.name("job"), "two"), Wakes: p.wakes("refused")})
	last := p.wakes("last")
	if _, places := p.a.(casnode.Placer); !places { // then nobody is told apart
		last[0].Process = ""
	}
	p.write(p.b, p.read(p.b, p.name("job")), casnode.Write{Row: row(p.name("job"), "three"), Wakes: last})
	want := []string{long, "early", "first", "last", "second"}
	if _, stamps := p.a.(casnode.Stamper); stamps {
		want = append(want, "stamped")
		for done := false; !done && p.ctx.Err() == nil; { // a busy machine may refuse some
			done, _ = p.write(p.a, p.read(p.a, p.name("job")), casnode.Write{Row: row(p.name("job"), "four"), Wakes: p.wakes("stamped"), Stamped: true})
		}
	}
	var got []string
	for len(got) < len(want) && !slices.Contains(got, "nothing") {
		got = append(got, next())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		p.Errorf("heard %q, want %q", got, want)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(p.patience):
		p.Errorf("Hear goes on after its context has ended")
	}
}

var callClaims = []claim{
	{name: "a cancelled call returns an error", check: func(p *probe) {
		r := p.put(p.name("job"), "one")
		seen := p.read(p.a, r.Name)
		ctx, cancel := context.WithCancel(p.ctx)
		cancel()
		if errors.Is(p.fails(ctx, seen), node.ErrUnsent) {
			p.has(p.b, r)
		}
	}},
	{name: "a Swap that returns ErrUnsent is never done", check: func(p *probe) {
		const tries = 60
		name := p.name("job")
		p.put(name, "one")
		began := time.Now()
		p.put(name, "two")
		took := time.Since(began)
		unsent := map[string]bool{}
		for i := range tries { // the context ends ever later in the Swap
			r, seen := row(name, "state"), p.read(p.a, name)
			ctx, cancel := context.WithTimeout(p.ctx, took*time.Duration(i)/tries)
			_, _, err := p.a.Swap(ctx, seen, casnode.Write{Row: r})
			cancel()
			unsent[r.Version] = errors.Is(err, node.ErrUnsent)
			if unsent[p.read(p.b, name).Row.Version] {
				p.Fatalf("a row was written, and Swap returned %v", err)
			}
		}
	}},
	{name: "a store that is closed returns errors", check: func(p *probe) {
		r := p.put(p.name("job"), "one")
		seen := p.read(p.a, r.Name)
		if err := p.a.Close(); err != nil {
			p.Errorf("Close: %v", err)
		}
		p.fails(p.ctx, seen)
		p.has(p.b, r)
	}},
	{name: "the name of a store is the same for all clients", check: func(p *probe) {
		if p.a.String() == "" || p.a.String() != p.b.String() {
			p.Errorf("the names are %q and %q", p.a, p.b)
		}
	}},
	{name: "the name of a store has no user and no space", check: func(p *probe) {
		if strings.ContainsAny(p.a.String(), "@ \t\n") {
			p.Errorf("the name is %q: it must have no @ and no space", p.a)
		}
	}},
}

// fails checks that all calls of a store return errors, and returns that of Swap.
func (p *probe) fails(ctx context.Context, seen casnode.Snapshot) error {
	p.Helper()
	errs := map[string]error{}
	_, errs["Read"] = p.a.Read(ctx, seen.Row.Name)
	_, errs["Scan"] = p.a.Scan(ctx, "", 1)
	_, _, errs["Swap"] = p.a.Swap(ctx, seen, casnode.Write{Row: row(seen.Row.Name, "two")})
	if s, places := p.a.(casnode.Placer); places {
		here := p.place("job", "late", "one", 1)
		_, errs["Put"] = s.Put(ctx, here, false)
		_, errs["Drop"] = s.Drop(ctx, here)
		_, errs["Places"] = s.Places(ctx, here.Name)
		_, errs["Live"] = s.Live(ctx, here.Process)
		errs["Evict"] = s.Evict(ctx, here.Name, here.Process)
	}
	for call, err := range errs {
		if err == nil {
			p.Errorf("%s returned no error", call)
		}
	}
	return errs["Swap"]
}
