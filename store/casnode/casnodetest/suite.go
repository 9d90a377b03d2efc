// Package casnodetest is the conformance suite for stores under package casnode:
// it tests what the comments of casnode.Store promise. Then it runs nodetest on
// nodes over the store.
//
//	func TestConformance(t *testing.T) {
//		casnodetest.Run(t, casnodetest.Harness{
//			Open: func(t testing.TB) (a, b casnode.Store) {
//				address := startServer(t)
//				return connect(t, address), connect(t, address)
//			},
//		})
//	}
//
// Each claim is a subtest, whose name states it. The suite causes no failures: the
// store's own tests have to show what a crash, a failover or a partition does, and
// that the identity changes when the server may have forgotten a write.
// docs/store-authors.md lists what else it does not see.
package casnodetest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
	"github.com/redlatch/redlatch/store/casnode"
)

// A Harness says how to reach the store under test.
type Harness struct {
	// Open opens one store twice, as two processes would. It is called once for
	// every claim, and may return the same store each time or a new one. Run
	// closes both. Required.
	Open func(t testing.TB) (a, b casnode.Store)

	// Unprepared opens a store twice that was never prepared, such as one whose
	// table does not exist. Run closes both. Required for a casnode.Preparer.
	Unprepared func(t testing.TB) (a, b casnode.Store)

	// Apart opens two stores on two servers. Run closes both. Defaults to nil:
	// the suite then does not see whether servers have different identities.
	Apart func(t testing.TB) (a, b casnode.Store)

	// Sweeps, Hears, Rings, Stamps and Places say that the store is a casnode.Sweeper, a
	// casnode.Hearer, a casnode.Ringer, a casnode.Stamper, a casnode.Placer. Default to
	// false: the claims about it are then left out. A store that is one all the same
	// fails. Of a Ringer there are no claims about wakes: who is rung for looks at the row,
	// and may find the same turn there again. Its own tests show that it wakes.
	Sweeps, Hears, Rings, Stamps, Places bool

	// Arrival says that places are in the order in which they were put, whatever their
	// tickets. Defaults to false: they are ordered by tickets.
	Arrival bool

	// Observed says that the store has no clock: its snapshots have no Now. Defaults
	// to false. Timers says that it is a casnode.Timers, too; ShortestTimer is then
	// how long its shortest timer runs, which defaults to no time.
	Observed, Timers bool
	ShortestTimer    time.Duration

	// Options are those of the nodes over it: the ones that you use. Defaults to
	// nil.
	Options *casnode.Options

	// Node opens two nodes over the store as your package makes them, like Open.
	// Defaults to nil: the suite makes them, with Options.
	Node func(t testing.TB) (a, b node.Node)

	// Advance lets the store's time pass, for a store whose clock the test
	// controls. Defaults to nil: the suite then waits.
	Advance func(d time.Duration)
}

// Run checks every claim, about the store and about nodes over it.
func Run(t *testing.T, h Harness) {
	if h.Open == nil {
		t.Fatal("casnodetest: Harness.Open is nil: it must open the store to test")
	}
	var slow []claim
	run := func(t *testing.T, c claim) {
		t.Run(c.name, func(t *testing.T) {
			if c.slow {
				t.Parallel()
			}
			a, b := h.open(c.stores)(t)
			c.run(t, h, a, b, 30*time.Second)
		})
	}
	for _, c := range claims(h) {
		if c.slow && h.Advance == nil {
			slow = append(slow, c)
			continue
		}
		run(t, c)
	}
	if h.Node == nil {
		h.Node = func(t testing.TB) (node.Node, node.Node) {
			a, b := h.Open(t)
			return casnode.New(a, h.Options), casnode.New(b, h.Options)
		}
	}
	t.Run("node", func(t *testing.T) {
		for _, c := range slow { // beside those of the nodes
			run(t, c)
		}
		nodetest.Run(t, nodetest.Harness{
			Open:   h.Node,
			Guards: true,
			Places: h.Places, Arrival: h.Arrival,
			Wakes:   h.Hears && (h.Options == nil || !h.Options.Poll),
			Advance: h.Advance, Observes: h.Observed, KeepsFences: h.Observed,
		})
	})
}

// stores says which two stores a claim is about.
type stores uint8

const (
	together   stores = iota // one store, opened twice
	unprepared               // the same, before Prepare
	apart                    // two servers
)

func (h Harness) open(s stores) func(t testing.TB) (a, b casnode.Store) {
	switch s {
	case unprepared:
		return h.Unprepared
	case apart:
		return h.Apart
	}
	return h.Open
}

// A claim is one sentence about stores, and the check that it holds.
type claim struct {
	name   string
	check  func(p *probe)
	stores stores // together by default
	slow   bool   // it waits for long
}

// run checks the claim on two stores, which it closes.
func (c claim) run(t reporter, h Harness, a, b casnode.Store, patience time.Duration) {
	p := newProbe(t, a, b, patience)
	p.h = h
	if c.stores != unprepared {
		p.prepare(a)
		p.prepare(b)
	}
	c.check(p)
}

// claims returns all claims that a store of the harness's kind must meet.
func claims(h Harness) []claim {
	all := slices.Concat(rowClaims, swapClaims, scanClaims, snapshotClaims, callClaims)
	all = append(all, abilities(h))
	if h.Observed {
		all = append(all, observedClaims...)
	} else {
		all = append(all, clockClaims...)
	}
	if h.Timers {
		all = append(all, timerClaims(h.ShortestTimer)...)
	}
	if h.Unprepared != nil {
		all = append(all, prepareClaims...)
	}
	if h.Apart != nil {
		all = append(all, apartClaim)
	}
	if h.Sweeps {
		all = append(all, sweepClaims...)
	}
	if h.Hears {
		all = append(all, hearClaims...)
	}
	if h.Stamps {
		all = append(all, stampClaims...)
	}
	if h.Places {
		all = append(all, placeClaims...)
	}
	return all
}

// abilities is the claim that the harness says what the store is.
func abilities(h Harness) claim {
	return claim{name: "the store is what the harness says", check: func(p *probe) {
		for _, ability := range []struct {
			name      string
			says, has bool
		}{
			{"Unprepared", h.Unprepared != nil, is[casnode.Preparer](p.a)}, {"Sweeps", h.Sweeps, is[casnode.Sweeper](p.a)},
			{"Hears", h.Hears, is[casnode.Hearer](p.a)}, {"Rings", h.Rings, is[casnode.Ringer](p.a)},
			{"Stamps", h.Stamps, is[casnode.Stamper](p.a)}, {"Places", h.Places, is[casnode.Placer](p.a)},
			{"Timers", h.Timers, is[casnode.Timers](p.a)}, {"Observed", h.Observed, p.read(p.a, p.name("job")).Now.IsZero()},
		} {
			if ability.says != ability.has {
				p.Errorf("Harness.%s is set: %v, must be %v for this store", ability.name, ability.says, ability.has)
			}
		}
	}}
}

func is[ability any](s casnode.Store) bool { _, ok := s.(ability); return ok }

// reporter is the part of a *testing.T that a claim uses. It is small, so that the
// suite's own test can see a claim fail.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// probe checks one claim, on names of its own.
type probe struct {
	reporter
	ctx    context.Context
	a, b   casnode.Store
	prefix string
	// patience is how long anything may take: far longer than a busy machine
	// needs.
	patience time.Duration
	h        Harness
}

func newProbe(t reporter, a, b casnode.Store, patience time.Duration) *probe {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	p := &probe{reporter: t, ctx: ctx, a: a, b: b, prefix: rand.Text() + "/", patience: patience}
	t.Cleanup(func() {
		cancel()
		a.Close()
		b.Close()
	})
	return p
}

// prepare prepares a store that is a Preparer.
func (p *probe) prepare(s casnode.Store) {
	if s, ok := s.(casnode.Preparer); ok {
		if err := s.Prepare(p.ctx); err != nil {
			p.Errorf("Prepare: %v", err)
		}
	}
}

// name returns a name of this probe.
func (p *probe) name(suffix string) string { return p.prefix + suffix }

func (p *probe) read(s casnode.Store, name string) casnode.Snapshot {
	p.Helper()
	seen, err := s.Read(p.ctx, name)
	if err != nil {
		p.Fatalf("Read of %q: %v", name, err)
	}
	return seen
}

// row returns a row under a new version.
func row(name, state string) casnode.Row {
	return casnode.Row{Name: name, Version: rand.Text(), State: []byte(state)}
}

// marker returns the marker of a server that is not marked, under a new version.
func marker() casnode.Row { return row(casnode.MarkerName, string(casnode.Unmarked())) }

func (p *probe) swap(s casnode.Store, seen casnode.Snapshot, r casnode.Row) bool {
	p.Helper()
	done, _ := p.write(s, seen, casnode.Write{Row: r})
	return done
}

func (p *probe) write(s casnode.Store, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot) {
	p.Helper()
	_, w.Look = s.(casnode.Placer)
	done, present, err := s.Swap(p.ctx, seen, w)
	if err != nil {
		p.Fatalf("Swap of %q: %v", w.Row.Name, err)
	}
	return done, present
}

// put writes a row, which must succeed, and returns it.
func (p *probe) put(name, state string) casnode.Row {
	p.Helper()
	r := row(name, state)
	if !p.swap(p.a, p.read(p.a, name), r) {
		p.Fatalf("Swap of %q as it was read was refused", name)
	}
	return r
}

// mark writes the marker.
func (p *probe) mark() {
	p.Helper()
	if !p.swap(p.a, p.read(p.a, casnode.MarkerName), marker()) {
		p.Fatalf("Swap of the marker as it was read was refused")
	}
}

// has checks what is stored of a name; the zero Row for nothing.
func (p *probe) has(s casnode.Store, want casnode.Row) {
	p.Helper()
	got := p.read(s, want.Name).Row
	if got.Version != want.Version || string(got.State) != string(want.State) || got.Version != "" && got.Name != want.Name {
		p.Errorf("the row of %q has version %q and %d bytes, want version %q and %d bytes", want.Name, got.Version, len(got.State), want.Version, len(want.State))
	}
}

// refused checks that a Swap is not done, and changes nothing.
func (p *probe) refused(why string, seen casnode.Snapshot, r casnode.Row) {
	p.Helper()
	p.refuse(why, seen, casnode.Write{Row: r})
	if _, stamps := p.a.(casnode.Stamper); !stamps || r.Name == casnode.MarkerName {
		return
	}
	// It is not refused because of the clock.
	seen.Now = p.read(p.a, r.Name).Now
	p.refuse(why, seen, casnode.Write{Row: r, Stamped: true})
}

// refuse checks that a write is not done, and that the store says what there is
// instead, if it says anything.
func (p *probe) refuse(why string, seen casnode.Snapshot, w casnode.Write) {
	p.Helper()
	name := w.Row.Name
	before := p.read(p.b, name)
	done, present := p.write(p.a, seen, w)
	after := p.read(p.b, name)
	if done || after.Row.Version != before.Row.Version || string(after.Row.State) != string(before.Row.State) {
		p.Errorf("Swap of %q (stamped: %v) was done, %s", name, w.Stamped, why)
	}
	if present.Server != "" || w.Stamped {
		p.ofPresent("Swap", name, before, present, after)
	}
}

// ofPresent checks a snapshot against those that were read before and after it.
func (p *probe) ofPresent(what, name string, before, seen, after casnode.Snapshot) {
	p.Helper()
	if seen.Row.Version != before.Row.Version || string(seen.Row.State) != string(before.Row.State) ||
		name != casnode.MarkerName && seen.Marker.Version != before.Marker.Version || seen.Server != before.Server ||
		seen.Now.Before(before.Now) || seen.Now.After(after.Now) || seen.KeepsFences != before.KeepsFences || seen.Floor < before.Floor {
		p.Errorf("%s of %q returned a snapshot that is not of the present", what, name)
	}
}
