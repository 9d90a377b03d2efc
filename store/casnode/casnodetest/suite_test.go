package casnodetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// shelf is what two stores in memory share.
type shelf struct {
	mu       sync.Mutex // guards all fields
	rows     map[string]casnode.Row
	ears     map[*store]ear
	clock    func() time.Time
	server   string
	prepared bool
	places   []casnode.Place
	lived    map[string]time.Time // until when a process lives
}

// ear is who hears.
type ear struct {
	process string
	heard   func(string)
}

// store is a store in memory. A mutant replaces one of its functions.
type store struct {
	*shelf
	closed bool

	same   sameness
	keep   func(r casnode.Row) casnode.Row
	key    func(name string) string
	read   func(s *store, name string) casnode.Snapshot
	page   func(rows []casnode.Row, after string, limit int) []casnode.Row
	remove sameness
	unable func(s *store, ctx context.Context) error
	wake   func(wakes []casnode.Wake) []casnode.Wake
	rash   bool // the wakes of a write that is refused are sent
	reset  func(s *store) error
	deaf   bool                            // Hear ignores its context
	hears  bool                            // Hear ignores that the store is closed
	early  bool                            // Hear is ready before it hears
	commit func(ctx context.Context) error // after the write
	timely func(late time.Duration) bool   // whether a write is stamped
	// stampWakes are the wakes that a stamped Swap sends.
	stampWakes func(wakes []casnode.Wake) []casnode.Wake
	// sameStamp is what a stamped Swap compares.
	sameStamp sameness
	stamp     func(late time.Duration) time.Duration
	name      string
	// present is what a Swap returns that saw present.
	present func(seen casnode.Snapshot, w casnode.Write, done bool, present casnode.Snapshot) casnode.Snapshot

	placing
}

// sameness reports whether a write finds what was read.
type sameness func(s *store, seen casnode.Snapshot, r casnode.Row) bool

func newStore(on *shelf) *store {
	same := allOf(sameRow, sameMarker, sameServer)
	return &store{
		shelf: on, name: "store/" + on.server, same: same, sameStamp: same,
		keep: func(r casnode.Row) casnode.Row { return r },
		key:  func(name string) string { return name },
		read: func(s *store, name string) casnode.Snapshot {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.snapshot(name)
		},
		page:   pageBy(strings.Compare),
		remove: allOf(sameVersion, sameServer),
		unable: func(s *store, ctx context.Context) error {
			if s.closed {
				return errors.New("the store is closed")
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.prepared {
				return casnode.ErrUnprepared
			}
			return ctx.Err()
		},
		wake:       func(wakes []casnode.Wake) []casnode.Wake { return wakes },
		reset:      func(s *store) error { return nil },
		commit:     func(context.Context) error { return nil },
		timely:     func(late time.Duration) bool { return late >= 0 && late <= casnode.Span },
		stamp:      func(late time.Duration) time.Duration { return late },
		stampWakes: func(wakes []casnode.Wake) []casnode.Wake { return wakes },
		present: func(_ casnode.Snapshot, _ casnode.Write, _ bool, present casnode.Snapshot) casnode.Snapshot {
			return present
		},
		placing: inPlaces(),
	}
}

// pageBy returns what returns a page in an order. The marker comes first in all.
func pageBy(order func(a, b string) int) func(rows []casnode.Row, after string, limit int) []casnode.Row {
	return func(rows []casnode.Row, after string, limit int) []casnode.Row {
		rows = slices.DeleteFunc(rows, func(r casnode.Row) bool { return order(r.Name, after) <= 0 })
		slices.SortFunc(rows, func(a, b casnode.Row) int { return order(a.Name, b.Name) })
		return rows[:min(limit, len(rows))]
	}
}

// What a write compares with what was read. The mutants leave some of it out.
var (
	sameRow sameness = func(s *store, seen casnode.Snapshot, r casnode.Row) bool {
		return s.rows[s.key(r.Name)].Version == seen.Row.Version
	}
	sameMarker = either(ofMarker, func(s *store, seen casnode.Snapshot, _ casnode.Row) bool {
		return s.rows[casnode.MarkerName].Version == seen.Marker.Version
	})
	sameVersion sameness = func(s *store, _ casnode.Snapshot, r casnode.Row) bool { return s.rows[r.Name].Version == r.Version }
	sameServer  sameness = func(s *store, seen casnode.Snapshot, _ casnode.Row) bool { return seen.Server == s.server }
	sameState   sameness = func(s *store, seen casnode.Snapshot, r casnode.Row) bool {
		return string(s.rows[r.Name].State) == string(seen.Row.State)
	}

	inserts  sameness = func(_ *store, seen casnode.Snapshot, _ casnode.Row) bool { return seen.Row.Version == "" }
	missing  sameness = func(s *store, _ casnode.Snapshot, r casnode.Row) bool { return s.rows[r.Name].Version == "" }
	unmarked sameness = func(_ *store, seen casnode.Snapshot, _ casnode.Row) bool { return seen.Marker.Version == "" }
	ofMarker sameness = func(_ *store, _ casnode.Snapshot, r casnode.Row) bool { return r.Name == casnode.MarkerName }
)

func allOf(all ...sameness) sameness {
	return func(s *store, seen casnode.Snapshot, r casnode.Row) bool {
		return !slices.ContainsFunc(all, func(same sameness) bool { return !same(s, seen, r) })
	}
}

func either(one, other sameness) sameness {
	return func(s *store, seen casnode.Snapshot, r casnode.Row) bool { return one(s, seen, r) || other(s, seen, r) }
}

// compares has a Swap compare these alone.
func compares(all ...sameness) func(*store) { return func(s *store) { s.same = allOf(all...) } }

// stampCompares has a stamped Swap compare these alone.
func stampCompares(all ...sameness) func(*store) {
	return func(s *store) { s.sameStamp = allOf(all...) }
}

// shows has a Read show something else.
func shows(change func(s *store, name string, seen *casnode.Snapshot)) func(*store) {
	return func(s *store) {
		s.read = func(s *store, name string) casnode.Snapshot {
			s.mu.Lock()
			defer s.mu.Unlock()
			seen := s.snapshot(name)
			change(s, name, &seen)
			return seen
		}
	}
}

// keeps has a Swap keep something else than the row.
func keeps(change func(s *store, r *casnode.Row)) func(*store) {
	return func(s *store) {
		s.keep = func(r casnode.Row) casnode.Row { change(s, &r); return r }
	}
}

// letOthersIn gives the mutex away for a moment.
func (s *store) letOthersIn() {
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	s.mu.Lock()
}

func (s *store) snapshot(name string) casnode.Snapshot {
	seen := casnode.Snapshot{Row: s.rows[s.key(name)], Marker: s.rows[casnode.MarkerName], Server: s.server, Now: s.clock().Truncate(time.Microsecond)}
	seen.Places = s.first(s, name)
	seen.Places = seen.Places[:min(len(seen.Places), casnode.FirstPlaces)]
	return seen
}

func (s *store) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	if err := s.unable(s, ctx); err != nil {
		return casnode.Snapshot{}, err
	}
	return s.read(s, name), nil
}

func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	if err := s.unable(s, ctx); err != nil {
		return false, present, err
	}
	var tell []func()
	present = s.act(s, w.Row.Name, func() { done, tell = s.swap(seen, w) })
	for _, f := range tell {
		f()
	}
	return done, s.present(seen, w, done, present), s.commit(ctx)
}

// swap writes, and returns what delivers the wakes.
func (s *store) swap(seen casnode.Snapshot, w casnode.Write) (same bool, tell []func()) {
	compare, row, wakes := s.same, w.Row, s.wake(w.Wakes)
	if w.Stamped {
		late := s.clock().Truncate(time.Microsecond).Sub(seen.Now)
		row.State = append(binary.BigEndian.AppendUint64(nil, uint64(s.stamp(late).Microseconds())), row.State...)
		compare, wakes = func(s *store, seen casnode.Snapshot, r casnode.Row) bool {
			return s.timely(late) && s.sameStamp(s, seen, r)
		}, s.stampWakes(w.Wakes)
	}
	if same = compare(s, seen, row); same {
		s.rows[s.key(row.Name)] = s.keep(row)
	}
	if w.Drop != nil && s.drops(same, w) {
		s.drop(s, *w.Drop)
	}
	for _, wake := range wakes {
		for _, e := range s.ears {
			if (same || s.rash) && (wake.Process == "" || wake.Process == e.process) {
				tell = append(tell, func() { e.heard(wake.Text) })
			}
		}
	}
	return same, tell
}

func (s *store) Stamps() {}

func (s *store) Scan(ctx context.Context, after string, limit int) ([]casnode.Row, error) {
	if err := s.unable(s, ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page(slices.Collect(maps.Values(s.rows)), after, limit), nil
}

func (s *store) Remove(_ context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		if s.remove(s, seen, r) {
			delete(s.rows, r.Name)
		}
	}
	return nil
}

func (s *store) Hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	if s.closed && !s.hears {
		return errors.New("the store is closed")
	}
	if s.early {
		ready()
	}
	s.mu.Lock()
	s.ears[s] = ear{process, heard}
	s.mu.Unlock()
	if !s.early {
		ready()
	}
	if s.deaf {
		select {}
	}
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ears, s)
	return ctx.Err()
}

func (s *store) Prepare(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reset(s); err != nil {
		return err
	}
	s.prepared = true
	return nil
}

func (s *store) String() string { return s.name }
func (s *store) Close() error   { s.closed = true; return nil }

func newShelf(clock func() time.Time) *shelf {
	return &shelf{rows: map[string]casnode.Row{}, ears: map[*store]ear{}, clock: clock, server: rand.Text(), lived: map[string]time.Time{}}
}

// harness has stores in memory that are Preparers, Sweepers and Hearers.
func harness(clock func() time.Time, damage func(*store)) Harness {
	if damage == nil {
		damage = func(*store) {}
	}
	open := func(first, second *shelf) (casnode.Store, casnode.Store) {
		a, b := newStore(first), newStore(second)
		damage(a)
		damage(b)
		return a, b
	}
	together := func(testing.TB) (casnode.Store, casnode.Store) {
		on := newShelf(clock)
		return open(on, on)
	}
	return Harness{
		Open: together, Unprepared: together,
		Apart:  func(testing.TB) (a, b casnode.Store) { return open(newShelf(clock), newShelf(clock)) },
		Sweeps: true, Hears: true, Stamps: true, Places: true,
	}
}

// whole has stores without damage.
var whole = harness(time.Now, nil)

// manualClock returns a clock, and what advances it.
func manualClock() (clock func() time.Time, advance func(d time.Duration)) {
	now := time.Now().Truncate(time.Microsecond)
	var mu sync.Mutex // guards now
	clock = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	return clock, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d).Truncate(time.Microsecond)
	}
}

func TestConformance(t *testing.T) {
	clock, advance := manualClock()
	h := harness(clock, nil)
	h.Advance, h.Node = advance, awake(h.Open, nil)
	Run(t, h)
}

// TestConformanceOfPlacesInTheOrderOfArrival has a store with an order of its own.
func TestConformanceOfPlacesInTheOrderOfArrival(t *testing.T) {
	clock, advance := manualClock()
	h := harness(clock, inArrival)
	h.Arrival, h.Advance, h.Node = true, advance, awake(h.Open, nil)
	Run(t, h)
}

// awake returns what opens nodes that have begun to hear. Both are made before time
// passes: without a clock each counts from then.
func awake(open func(testing.TB) (a, b casnode.Store), opts *casnode.Options) func(testing.TB) (a, b node.Node) {
	return func(t testing.TB) (node.Node, node.Node) {
		a, b := open(t)
		first, second := casnode.New(a, opts), casnode.New(b, opts)
		for _, n := range []*casnode.Node{first, second} {
			n.Listen(func(node.Wake) {})
			ask := node.Request{Op: node.OpAcquire, Name: "awake", Value: "holder", TTL: time.Minute, Fencing: node.Fencing{Window: time.Minute, Retention: time.Minute}}
			for reply, err := n.Do(t.Context(), ask); !reply.Wakes; reply, err = n.Do(t.Context(), ask) {
				check.Must(t, err)
				ask.Value, ask.Wait, ask.Ticket = "waiter", true, 1
			}
			for _, value := range []string{"waiter", "holder"} {
				_, err := n.Do(t.Context(), node.Request{Op: node.OpRelease, Name: "awake", Value: value})
				check.Must(t, err)
			}
		}
		return first, second
	}
}

// TestConformanceOfAPlainStore runs the claims that every store must meet.
func TestConformanceOfAPlainStore(t *testing.T) {
	type plain struct{ casnode.Store }
	clock, advance := manualClock()
	Run(t, Harness{
		Open: func(testing.TB) (casnode.Store, casnode.Store) {
			on := newShelf(clock)
			on.prepared = true
			return plain{newStore(on)}, plain{newStore(on)}
		},
		Advance: advance,
	})
}

// TestHarnessSaysWhatTheStoreIs has harnesses that say too little.
func TestHarnessSaysWhatTheStoreIs(t *testing.T) {
	if fails(abilities(whole), nil) {
		t.Errorf("the claim fails for %+v", whole)
	}
	for _, drop := range []func(h *Harness){
		func(h *Harness) { h.Unprepared = nil },
		func(h *Harness) { h.Sweeps = false },
		func(h *Harness) { h.Hears = false },
		func(h *Harness) { h.Stamps = false },
		func(h *Harness) { h.Places = false },
	} {
		h := whole
		if drop(&h); !fails(abilities(h), nil) {
			t.Errorf("the claim holds for %+v", h)
		}
	}
}

// recorder sees a claim fail.
type recorder struct {
	mu       sync.Mutex
	failed   bool
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// fails reports whether a claim fails on a store that is broken.
func fails(c claim, damage func(*store)) bool {
	if c.slow {
		clock, advance := manualClock()
		h := harness(clock, damage)
		h.Advance = advance
		return failsOn(c, h)
	}
	return failsOn(c, harness(time.Now, damage))
}

// failsOn reports whether a claim fails on a harness's stores.
func failsOn(c claim, h Harness) bool {
	var r recorder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a, b := h.open(c.stores)(nil)
		c.run(&r, h, a, b, 3*time.Second)
	}()
	<-ended
	for _, f := range r.cleanups {
		f()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

type mutant struct {
	name   string
	damage func(*store)
	claim  string // that must fail
}

var mutants = []mutant{
	{"Swap does not compare the row", compares(sameMarker, sameServer), "a Swap is refused if the row has changed"},
	{"an insert replaces a row", compares(either(inserts, sameRow), sameMarker, sameServer), "a Swap is refused if there is a row meanwhile"},
	{"an update inserts a row", compares(either(missing, sameRow), sameMarker, sameServer), "a Swap is refused if the row is gone"},
	{"Swap compares states", compares(sameState, sameMarker, sameServer), "a Swap is refused if the row is gone"},
	{"Swap does not compare the marker", compares(sameRow, sameServer), "a Swap is refused if the marker has changed"},
	{"an insert does not compare the marker", compares(sameRow, either(inserts, sameMarker), sameServer), "a Swap is refused if the marker has changed"},
	{"Swap does not compare the marker where none was read", compares(sameRow, either(unmarked, sameMarker), sameServer),
		"a Swap is refused if the marker has changed"},
	{"the marker is always written", compares(either(ofMarker, sameRow), sameMarker, sameServer), "a Swap of the marker is refused if it has changed"},
	{"Swap does not compare the server", compares(sameRow, sameMarker), "a Swap is refused by another server"},
	{"an insert does not compare the server", compares(sameRow, sameMarker, either(inserts, sameServer)), "a Swap is refused by another server"},
	{"the marker is written by another server", compares(sameRow, sameMarker, either(ofMarker, sameServer)), "a Swap is refused by another server"},
	{"Swap compares first and writes later", func(s *store) {
		s.same = func(s *store, seen casnode.Snapshot, r casnode.Row) bool {
			defer s.letOthersIn()
			return allOf(sameRow, sameMarker, sameServer)(s, seen, r)
		}
	}, "of many Swaps at once one is done"},
	{"versions are counted", keeps(func(s *store, r *casnode.Row) {
		r.Version = "1" + strings.Repeat("1", len(s.rows[r.Name].Version))
	}), "a Swap is refused if the row is gone"},
	{"versions are cut off", keeps(func(_ *store, r *casnode.Row) { r.Version = r.Version[:min(8, len(r.Version))] }),
		"a row is read as it was written, by every client"},
	{"states end at a zero byte", keeps(func(_ *store, r *casnode.Row) { r.State, _, _ = bytes.Cut(r.State, []byte{0}) }),
		"a row is read as it was written, by every client"},
	{"states are cut off", keeps(func(_ *store, r *casnode.Row) { r.State = r.State[:min(65535, len(r.State))] }),
		"a row is read as it was written, by every client"},
	{"names are not case-sensitive", func(s *store) { s.key = strings.ToLower }, "names that differ in a byte are different rows"},
	{"names have no spaces at their ends", func(s *store) { s.key = strings.TrimSpace }, "names that differ in a byte are different rows"},
	{"a missing row has a version", shows(func(s *store, _ string, seen *casnode.Snapshot) {
		seen.Row.Version = cmp.Or(seen.Row.Version, "0")
	}), "a missing row has no version"},
	{"Read shows no marker beside other rows", shows(func(s *store, name string, seen *casnode.Snapshot) {
		if name != casnode.MarkerName {
			seen.Marker = casnode.Row{}
		}
	}), "the marker is a row"},
	{"Read takes the marker later than the row", shows(func(s *store, name string, seen *casnode.Snapshot) {
		s.letOthersIn()
		seen.Marker = s.snapshot(name).Marker
	}), "a snapshot is of one moment"},
	{"Read takes the row later than the marker", shows(func(s *store, name string, seen *casnode.Snapshot) {
		s.letOthersIn()
		seen.Row = s.snapshot(name).Row
	}), "a snapshot is of one moment"},
	{"Read lags behind", func(s *store) {
		last := map[string]casnode.Snapshot{}
		shows(func(_ *store, name string, seen *casnode.Snapshot) {
			now := *seen
			if was, read := last[name]; read {
				*seen = was
			}
			last[name] = now
		})(s)
	}, "Read shows what was written before it began"},
	{"each client has its own identity", shows(func(s *store, _ string, seen *casnode.Snapshot) {
		seen.Server = string(rune('a' + len(s.ears)))
		s.ears[s] = ear{}
	}), "all clients see one server"},
	{"the clock is each client's own", shows(func(s *store, _ string, seen *casnode.Snapshot) {
		s.ears[s] = ear{}
		seen.Now = seen.Now.Add(-time.Duration(len(s.ears)) * time.Hour)
	}), "all clients see one clock"},
	{"Scan begins with the row", func(s *store) {
		page := s.page
		s.page = func(rows []casnode.Row, after string, limit int) []casnode.Row {
			return page(rows, after[:max(0, len(after)-1)], limit)
		}
	}, "Scan returns pages in the order of the bytes"},
	{"Scan orders by length", func(s *store) {
		s.page = pageBy(func(a, b string) int { return len(a) - len(b) })
	}, "Scan returns pages in the order of the bytes"},
	{"Scan orders by letters", func(s *store) {
		s.page = pageBy(func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	}, "Scan returns pages in the order of the bytes"},
	{"Scan has no limit", func(s *store) {
		page := s.page
		s.page = func(rows []casnode.Row, after string, _ int) []casnode.Row { return page(rows, after, len(rows)) }
	}, "Scan returns pages in the order of the bytes"},
	{"Scan returns the marker", func(s *store) {
		s.page = pageBy(func(a, b string) int { return cmp.Or(strings.Compare(a, b), 1) })
	}, "Scan returns all rows but the marker"},
	{"Remove does not compare versions", func(s *store) { s.remove = sameServer }, "Remove leaves what has changed, and what another server shows"},
	{"Remove does not compare the server", func(s *store) { s.remove = sameVersion }, "Remove leaves what has changed, and what another server shows"},
	{"Prepare empties the store", func(s *store) {
		s.reset = func(s *store) error { clear(s.rows); return nil }
	}, "a store that is prepared again keeps its rows"},
	{"wakes are lost", func(s *store) { s.wake = func([]casnode.Wake) []casnode.Wake { return nil } }, "wakes arrive with the write, and only with it"},
	{"wakes come without a write", func(s *store) { s.rash = true }, "wakes arrive with the write, and only with it"},
	{"only the first wake is sent", func(s *store) {
		s.wake = func(wakes []casnode.Wake) []casnode.Wake { return wakes[:min(1, len(wakes))] }
	}, "wakes arrive with the write, and only with it"},
	{"Hear never ends", func(s *store) { s.deaf = true }, "wakes arrive with the write, and only with it"},
	{"contexts are ignored", func(s *store) {
		s.unable = func(*store, context.Context) error { return nil }
	}, "a cancelled call returns an error"},
	{"a Swap that is done returns ErrUnsent", func(s *store) {
		s.unable = func(s *store, ctx context.Context) error {
			if ctx.Err() == nil {
				return nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for name, r := range s.rows {
				r.Version += "0"
				s.rows[name] = r
			}
			return node.ErrUnsent
		}
	}, "a cancelled call returns an error"},
	{"a closed store goes on", func(s *store) {
		s.unable = func(_ *store, ctx context.Context) error { return ctx.Err() }
	}, "a store that is closed returns errors"},
	{"an identity is the same for every server", func(s *store) { s.server = "server" }, "two servers have two identities and two names"},
	{"a name is the same for every server", func(s *store) { s.name = "store" }, "two servers have two identities and two names"},
	{"the clock counts milliseconds", func(s *store) { s.clock = func() time.Time { return time.Now().Truncate(time.Millisecond) } }, "the clock counts microseconds"},
	{"the clock is time.Now", shows(func(_ *store, _ string, seen *casnode.Snapshot) { seen.Now = time.Now() }), "the clock counts microseconds"},
	{"that the table is missing is not wrapped", func(s *store) {
		unable := s.unable
		s.unable = func(s *store, ctx context.Context) error {
			if err := unable(s, ctx); err != nil {
				return errors.New(err.Error())
			}
			return nil
		}
	}, "a store that is not prepared returns ErrUnprepared"},
	{"Prepare fails if another one creates the table", func(s *store) {
		s.reset = func(s *store) error {
			before := s.prepared
			if s.letOthersIn(); s.prepared != before {
				return errors.New("the table exists")
			}
			return nil
		}
	}, "a store may be prepared by many at once"},
	{"an error of the commit is ErrUnsent", func(s *store) {
		s.commit = func(ctx context.Context) error {
			time.Sleep(time.Millisecond)
			if ctx.Err() != nil {
				return node.ErrUnsent
			}
			return nil
		}
	}, "a Swap that returns ErrUnsent is never done"},
	{"a stamped Swap sends no wakes", func(s *store) {
		s.stampWakes = func([]casnode.Wake) []casnode.Wake { return nil }
	}, "wakes arrive with the write, and only with it"},
	{"a stamped Swap does not compare the row", stampCompares(sameMarker, sameServer), "a Swap is refused if the row has changed"},
	{"a stamped Swap does not compare the marker", stampCompares(sameRow, sameServer), "a Swap is refused if the marker has changed"},
	{"a stamped Swap does not compare the server", stampCompares(sameRow, sameMarker), "a Swap is refused by another server"},
	{"the stamp is of the remembered time", func(s *store) {
		s.stamp = func(time.Duration) time.Duration { return 0 }
	}, "a stamp is the time of the write"},
	{"the stamp counts milliseconds", func(s *store) {
		s.stamp = func(late time.Duration) time.Duration { return late / 1000 }
	}, "a stamp is the time of the write"},
	{"a stamp is refused by a clock that moves", func(s *store) {
		s.timely = func(late time.Duration) bool { return late == 0 }
	}, "a stamp is the time of the write"},
	{"a stamp is written long after the time that is expected", func(s *store) {
		s.timely = func(late time.Duration) bool { return late >= 0 }
	}, "a stamp is refused if the clock is not as expected"},
	{"a stamp is written before the time that is expected", func(s *store) {
		s.timely = func(late time.Duration) bool { return late <= casnode.Span }
	}, "a stamp is refused if the clock is not as expected"},
	{"a Swap that is refused returns what was remembered", func(s *store) {
		s.present = func(seen casnode.Snapshot, _ casnode.Write, _ bool, _ casnode.Snapshot) casnode.Snapshot { return seen }
	}, "a Swap is refused if the row has changed"},
	{"a stamped Swap that is refused says nothing", func(s *store) {
		s.present = func(_ casnode.Snapshot, _ casnode.Write, done bool, present casnode.Snapshot) casnode.Snapshot {
			if !done {
				return casnode.Snapshot{}
			}
			return present
		}
	}, "a Swap is refused if the row has changed"},
	{"Hear is ready before it hears", func(s *store) { s.early = true }, "wakes arrive with the write, and only with it"},
	{"Hear ignores Close", func(s *store) { s.hears = true }, "Hear of a store that is closed returns an error"},
	{"the name has the user", func(s *store) { s.name = "user@" + s.name }, "the name of a store has no user and no space"},
	{"stores have names of their own", func(s *store) { s.name = time.Now().String() }, "the name of a store is the same for all clients"},
}

// TestSuiteSeesEveryMutant breaks a store in every way that a claim is about.
func TestSuiteSeesEveryMutant(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for half a minute")
	}
	claims := claims(whole)
	seen := map[string]bool{abilities(whole).name: true} // its test is above
	for _, m := range slices.Concat(mutants, placeMutants) {
		i := slices.IndexFunc(claims, func(c claim) bool { return c.name == m.claim })
		if i < 0 {
			t.Fatalf("there is no claim %q", m.claim)
		}
		seen[m.claim] = true
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if !fails(claims[i], m.damage) {
				t.Errorf("%q holds", m.claim)
			}
		})
	}
	for _, c := range claims {
		if !seen[c.name] {
			t.Errorf("no mutant is about %q", c.name)
		}
	}
}
