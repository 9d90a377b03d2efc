// Package clockless is a casnode.Store in memory without a clock, for tests of the
// observed clock.
package clockless

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// Shelf is what several stores share: the server.
type Shelf struct {
	// Uptime is the server's monotonic clock, by which timers run.
	Uptime func() time.Duration
	// Damage breaks a rule of the store, for tests of tests.
	Damage Damage

	mu     sync.Mutex // guards all fields below
	rows   map[string]casnode.Row
	floor  node.Token
	server string
	timers map[string]map[string]time.Duration // by row and id, when they end
	ears   map[*int]ear
	places []casnode.Place
	lived  map[string]time.Duration // until when a process lives
}

// ear is who hears.
type ear struct {
	process string
	heard   func(string)
}

// Damage is a rule that a store breaks.
type Damage uint8

// What can be broken.
const (
	None            Damage = iota
	InsertsAnyFloor        // an insert does not compare the floor
	FloorFalls             // a removal lowers the floor
	FloorStays             // a removal does not raise the floor
	ShortTimers            // timers end early
	EndlessTimers          // timers do not end
	SharedTimers           // all rows have all timers
	TimersFirst            // timers are read before the row
	DropsAll               // all timers of a row are dropped at once
	LosesTimers            // timers end with their client
	ForgetsFences          // it says that it keeps no fences
)

// New returns an empty server.
func New(uptime func() time.Duration) *Shelf {
	if uptime == nil {
		start := time.Now()
		uptime = func() time.Duration { return time.Since(start) }
	}
	return &Shelf{
		Uptime: uptime, rows: map[string]casnode.Row{}, server: rand.Text(),
		timers: map[string]map[string]time.Duration{}, ears: map[*int]ear{},
		lived: map[string]time.Duration{},
	}
}

// Store is a client's connection to the server.
type Store struct {
	*Shelf
	closed bool
	// Between is called before and after each Read, and before each Swap, without the
	// mutex.
	Between func()
}

// Open connects to the server.
func (s *Shelf) Open() *Store { return &Store{Shelf: s} }

// Rows returns how many rows there are, and the size of the largest state.
func (s *Shelf) Rows() (n, largest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows {
		largest = max(largest, len(r.State))
	}
	return len(s.rows), largest
}

// Row returns the row of a name.
func (s *Shelf) Row(name string) casnode.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[name]
}

// Running returns how many timers run.
func (s *Shelf) Running() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.timers {
		n += len(s.running(name))
	}
	return n
}

func (s *Shelf) running(name string) (all []string) {
	for row, timers := range s.timers {
		if row != name && s.Damage != SharedTimers {
			continue
		}
		for id, end := range timers {
			if s.Uptime() < end {
				all = append(all, id)
			}
		}
	}
	return all
}

func (s *Store) between() {
	if s.Between != nil {
		s.Between()
	}
}

func (s *Store) unable(ctx context.Context) error {
	if s.closed {
		return errors.New("the store is closed")
	}
	return ctx.Err()
}

// Read returns the row of a name.
func (s *Store) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	if err := s.unable(ctx); err != nil {
		return casnode.Snapshot{}, err
	}
	s.between()
	defer s.between()
	s.mu.Lock()
	defer s.mu.Unlock()
	early := s.running(name)
	if s.Damage == TimersFirst {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	seen := casnode.Snapshot{
		Row: s.rows[name], Marker: s.rows[casnode.MarkerName], Server: s.server,
		KeepsFences: s.Damage != ForgetsFences, Floor: s.floor,
	}
	seen.Row.Timers, seen.Marker.Timers = s.running(name), s.running(casnode.MarkerName)
	if s.Damage == TimersFirst {
		seen.Row.Timers = early
	}
	return seen, nil
}

// Swap writes a row.
func (s *Store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, present casnode.Snapshot, err error) {
	if err := s.unable(ctx); err != nil {
		return false, present, err
	}
	s.between()
	s.mu.Lock()
	row := w.Row
	same := s.rows[row.Name].Version == seen.Row.Version && s.server == seen.Server &&
		(row.Name == casnode.MarkerName || s.rows[casnode.MarkerName].Version == seen.Marker.Version) &&
		(seen.Row.Version != "" || s.floor == seen.Floor || s.Damage == InsertsAnyFloor)
	if same {
		s.rows[row.Name] = row
	}
	if same && w.Drop != nil {
		s.drop(*w.Drop)
	}
	var tell []func()
	for _, wake := range w.Wakes {
		for _, e := range s.ears {
			if same && (wake.Process == "" || wake.Process == e.process) {
				tell = append(tell, func() { e.heard(wake.Text) })
			}
		}
	}
	s.mu.Unlock()
	for _, f := range tell {
		f()
	}
	return same, present, nil
}

// Scan returns rows in the order of their names.
func (s *Store) Scan(ctx context.Context, after string, limit int) (all []casnode.Row, err error) {
	if err := s.unable(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, r := range s.rows {
		if name > after && name != casnode.MarkerName {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b casnode.Row) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(limit, len(all))], nil
}

// Remove removes rows, and raises the floor.
func (s *Store) Remove(_ context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != seen.Server {
		return nil
	}
	switch s.Damage {
	case FloorStays:
	case FloorFalls:
		s.floor = seen.Floor - 500
	default:
		s.floor = max(s.floor, seen.Floor)
	}
	for _, r := range rows {
		if s.rows[r.Name].Version == r.Version {
			delete(s.rows, r.Name)
		}
	}
	return nil
}

// Hear calls heard with every wake.
func (s *Store) Hear(ctx context.Context, process string, ready func(), heard func(string)) error {
	if s.closed {
		return errors.New("the store is closed")
	}
	id := new(int)
	s.mu.Lock()
	s.ears[id] = ear{process, heard}
	s.mu.Unlock()
	ready()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ears, id)
	return ctx.Err()
}

// String names the store.
func (s *Store) String() string { return "clockless:" + s.server }

// Close closes the store.
func (s *Store) Close() error {
	s.closed = true
	if s.Damage == LosesTimers {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.timers)
	}
	return nil
}

// Timed is a Store with timers.
type Timed struct{ *Store }

// StartTimer starts a timer.
func (s Timed) StartTimer(ctx context.Context, name, id string, d time.Duration) (bool, error) {
	if err := s.unable(ctx); err != nil {
		return false, err
	}
	switch s.Damage {
	case ShortTimers:
		d = d * 3 / 4
	case EndlessTimers:
		d = 1 << 60
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timers[name] == nil {
		s.timers[name] = map[string]time.Duration{}
	}
	s.timers[name][id] = s.Uptime() + d
	return true, nil
}

// DropTimers removes timers.
func (s Timed) DropTimers(_ context.Context, name string, ids []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Damage == DropsAll {
		delete(s.timers, name)
	}
	for _, id := range ids {
		delete(s.timers[name], id)
	}
	return nil
}
