package casnode

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file is the clock of a store that has none: Snapshot.Now is zero. The clock
// is observed. A row says how much is left of each time, with a stamp that is new
// whenever that time is set anew. A process counts what is left on its monotonic
// clock, from when its read of that stamp returned. A writer writes what it has
// observed to be left.
//
// Why nothing ends early: a holder counts from before it sent its request. The write
// comes after that, every read of it after the write, and the count after the read.
// Who writes the row again writes no less than what is left by its own count, which
// began late in the same way. So no count ends before the holder's own, if the rates
// of two clocks differ by no more than the holder allows for (1 %). What the clocks
// show does not matter, nor does how long a process was stopped in between.
//
// Why the stamp: a process that has just read the row, and extends the lock for as
// long as it was extended before, writes what is stored already. Another one that
// has observed the row for longer could not tell that the lock was extended.
//
// Why it ends: who waits observes. Who leaves before leaves a timer, in a store that
// has some: see Timers. What lasts for hours, in a world of processes that last for
// seconds, is limited in number: see nodestate.Entry.Limit.

var errFences = errors.New("casnode: the store has no clock (Snapshot.Now), and must keep fences (Snapshot.KeepsFences)")

// observer is what a process has observed of the times in the rows.
type observer struct {
	base   time.Time            // what Now shows at uptime 0
	uptime func() time.Duration // a monotonic clock

	mu   sync.Mutex // guards rows and pruned
	rows map[string]sight
	// pruned is when rows were last looked through.
	pruned time.Duration
}

// sight is when the times of a row end, by their stamps. To forget it is safe: the
// count begins anew.
type sight struct {
	ends map[uint64]time.Duration
	used time.Duration
}

const (
	// sightKept is for how long a row is remembered that nobody reads. mostSights is
	// how many are.
	sightKept  = 10 * time.Minute
	mostSights = 10_000
)

func newObserver(uptime func() time.Duration) *observer {
	if uptime == nil {
		start := time.Now()
		uptime = func() time.Duration { return time.Since(start) }
	}
	o := &observer{uptime: uptime, rows: map[string]sight{}}
	// It only serves to make tokens. It does not follow a wall clock that is set.
	o.base = time.UnixMicro(time.Now().UnixMicro()).UTC().Add(-o.now())
	return o
}

// now is the uptime in whole microseconds.
func (o *observer) now() time.Duration { return o.uptime().Truncate(time.Microsecond) }

// look begins the count of a snapshot of a store without a clock. It is called
// when its rows were read, and not before.
func (n *Node) look(s *Snapshot) error {
	if !s.Now.IsZero() && s.by == nil {
		return nil
	}
	if !s.KeepsFences {
		return errFences
	}
	s.by, s.Marker.Name = n.observer, MarkerName
	s.up = s.by.now()
	s.since, s.Now = s.up, s.by.base.Add(s.ahead+s.up)
	return nil
}

// judgeBy sets a snapshot to the clock that the request has, if the store has none: the
// token of the request is judged by it. What is left of a time is the same on every clock. Records say
// when they began, which must not change: they stay on the observer's.
func (s *Snapshot) judgeBy(req node.Request) {
	if s.by != nil && !req.Clock.IsZero() {
		clock := time.UnixMicro(req.Clock.UnixMicro()).UTC()
		s.ahead, s.Now = s.ahead+clock.Sub(s.Now), clock
	}
}

// sight is how the times of a row are read that was first seen then. It returns what
// was observed of them, to be remembered.
func (s *Snapshot) sight(row *Row, since time.Duration) (*nodestate.Sight, sight) {
	known := s.by.known(row.Name)
	seen := sight{ends: map[uint64]time.Duration{}, used: s.up}
	left := func(t nodestate.Stamp, left time.Duration) time.Duration {
		end := since + left
		// An age is the same for as long as it is remembered: some are compared.
		if before, ok := known.ends[t.Number]; ok && (before < end || left <= 0) {
			end = before
		}
		if t.Timer != "" && !s.scanned && !slices.Contains(row.Timers, t.Timer) {
			end = min(end, s.up) // its timer has run out
		}
		seen.ends[t.Number] = end
		return end - s.up
	}
	return &nodestate.Sight{Now: s.Now, Left: left}, seen
}

// observed returns what a row says about its name, by what was observed.
func (s *Snapshot) observed() (e nodestate.Entry, err error) {
	if s.Row.Version != "" && len(s.Row.State) == 0 {
		return e, errEmpty
	}
	how, seen := s.sight(&s.Row, s.since)
	if err = e.DecodeSeen(s.Row.State, how); err == nil && !s.scanned && !s.recalled {
		s.by.remember(s.Row.Name, seen)
	}
	return e, err
}

// marker returns the marker of a snapshot.
func (s *Snapshot) marker() (m nodestate.Marker, err error) {
	if s.decoded != nil {
		return *s.decoded, nil
	}
	if s.by == nil || s.Marker.Version != "" && len(s.Marker.State) == 0 {
		return s.Marker.marker()
	}
	if bytes.Equal(s.Marker.State, Unmarked()) {
		return m, nil // a store without a clock may always have the row, too
	}
	how, seen := s.sight(&s.Marker, s.up)
	observed := how.Left
	how.Left = func(t nodestate.Stamp, says time.Duration) time.Duration {
		left := observed(t, says)
		s.overdue = says > 0 && left <= 0
		return left
	}
	if err = m.DecodeSeen(s.Marker.State, how); err == nil && !s.recalled {
		s.by.remember(MarkerName, seen)
	}
	return m, err
}

// state returns the state of an entry or a marker to write, and when its new times
// end, by their stamps.
func (s *Snapshot) state(appendSeen func([]byte, *nodestate.Sight) []byte) ([]byte, map[uint64]time.Duration) {
	fresh := map[uint64]time.Duration{}
	return appendSeen(nil, &nodestate.Sight{
		Now: s.by.base.Add(s.ahead + s.by.now()), // what is left when it is written
		New: func(t time.Time) uint64 {
			number := rand.Uint64() | 1
			fresh[number] = t.Sub(s.by.base) - s.ahead
			return number
		},
	}), fresh
}

// same returns the state of an entry to compare it with another one of the same
// request. All new times have one stamp.
func (s *Snapshot) same(e *nodestate.Entry) []byte {
	if s.by == nil {
		return e.AppendTo(nil)
	}
	return e.AppendSeen(nil, &nodestate.Sight{Now: s.Now, New: func(time.Time) uint64 { return 1 }})
}

// known returns what was observed of a row. Nobody changes it.
func (o *observer) known(name string) sight {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rows[name]
}

// remember remembers what was observed of a row. Of two sights of one stamp, the
// earlier one counts.
func (o *observer) remember(name string, seen sight) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.rows[name].ends
	for number, end := range seen.ends {
		if b, ok := before[number]; ok {
			seen.ends[number] = min(b, end)
		}
	}
	o.put(name, seen)
}

// wrote remembers times that this process has set, from when its request began.
func (o *observer) wrote(name string, fresh map[uint64]time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(fresh, o.rows[name].ends)
	o.put(name, sight{fresh, o.now()})
}

func (o *observer) put(name string, s sight) {
	if len(o.rows) >= mostSights || s.used-o.pruned > sightKept {
		o.pruned = s.used
		maps.DeleteFunc(o.rows, func(_ string, x sight) bool { return s.used-x.used > sightKept })
		for other := range o.rows {
			if len(o.rows) < mostSights {
				break
			}
			delete(o.rows, other)
		}
	}
	o.rows[name] = s
}

// hideStampsIn removes the stamps of its times from a listing, and notes that the node
// has no clock.
func (s *Snapshot) hideStampsIn(l *node.Listing) {
	if s.by == nil {
		return
	}
	l.Since, l.Reply.Clockless = l.Since.UTC(), true
	for i := range l.Holders {
		l.Holders[i].Until = l.Holders[i].Until.UTC()
	}
}
