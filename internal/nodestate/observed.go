package nodestate

import (
	"strings"
	"time"
)

// This file is for nodes that store entries where there is no clock. A time is
// stored as how much of it is left, with a stamp: a random number that is new
// whenever the time is set anew. Each process counts what is left on a clock of its
// own, and tells by the stamp since when.
//
// In memory a time that was read is in a location of its own, which is named by the
// stamp. The rules know nothing of it. A rule that keeps a time keeps its location,
// and so its stamp. A rule that sets a time makes it from the time of the request,
// and so the time has no stamp yet. Nothing has to remember to say so.

// Stamp identifies a time that was set once, and which nobody has set anew since.
type Stamp struct {
	Number uint64
	// Timer is a timer of the store that was left for this stamp; "" for none.
	Timer string
}

// Sight is how one request reads and writes times.
type Sight struct {
	// Now is the time of the request, on a clock of this process.
	Now time.Time
	// Left returns what is left of a time that was read, of which the state says
	// that this much is left.
	Left func(s Stamp, left time.Duration) time.Duration
	// New returns the number for a time that has no stamp. It is not 0.
	New func(t time.Time) uint64
}

// zonePrefix begins the names of the locations of times that were read.
const zonePrefix = "observed "

// in returns the time with a stamp.
func (s Stamp) in(t time.Time) time.Time {
	number := make([]byte, 0, len(zonePrefix)+8+len(s.Timer))
	number = append(number, zonePrefix...)
	for i := range 8 {
		number = append(number, byte(s.Number>>(8*i)))
	}
	return t.In(time.FixedZone(string(number)+s.Timer, 0))
}

// StampOf returns the stamp of a time that was read and was not set since. It
// reports false for every other time.
func StampOf(t time.Time) (s Stamp, ok bool) {
	name, ok := strings.CutPrefix(t.Location().String(), zonePrefix)
	if !ok || len(name) < 8 {
		return s, false
	}
	for i := range 8 {
		s.Number |= uint64(name[i]) << (8 * i)
	}
	s.Timer = name[8:]
	return s, true
}

// observedEncoding is the first byte of a state whose times are stamped.
const observedEncoding = 2

// AppendSeen is AppendTo for a store without a clock.
func (e *Entry) AppendSeen(b []byte, s *Sight) []byte { return e.encode(b, s) }

// AppendSeen is AppendTo for a store without a clock.
func (m *Marker) AppendSeen(b []byte, s *Sight) []byte { return m.encode(b, s) }

// DecodeSeen reads what AppendSeen wrote.
func (e *Entry) DecodeSeen(b []byte, s *Sight) error {
	err := e.decode(b, s)
	if err != nil {
		*e = Entry{}
	}
	return err
}

// DecodeSeen reads what AppendSeen wrote.
func (m *Marker) DecodeSeen(b []byte, s *Sight) error {
	err := m.decode(b, s)
	if err != nil {
		*m = Marker{}
	}
	return err
}

// seen writes or reads a time with its stamp: the number, what is left, rounded up
// to microseconds, and the timer. The number 0 is no time.
func (c *codec) seen(t *time.Time) {
	var s Stamp
	var left int64
	if c.writes && !t.IsZero() {
		d := t.Sub(c.sight.Now)
		left = int64(d / time.Microsecond)
		if d%time.Microsecond > 0 {
			left++
		}
		var old bool
		if s, old = StampOf(*t); !old || s.Number == 0 {
			s.Number = c.sight.New(*t)
		}
	}
	if number(c, &s.Number); s.Number == 0 {
		return
	}
	number(c, &left)
	c.text(&s.Timer)
	if !c.writes && !c.bad {
		*t = s.in(c.sight.Now.Add(c.sight.Left(s, time.Duration(left)*time.Microsecond)))
	}
}

// leave gives a time a timer. The time keeps its stamp. It returns how long
// that timer has to run; 0 if the time has another one, or can have none, because
// it is new.
func leave(t *time.Time, timer string, now time.Time) time.Duration {
	s, ok := StampOf(*t)
	if !ok || s.Timer != "" || !t.After(now) {
		return 0
	}
	s.Timer = timer
	d := t.Sub(now)
	*t = s.in(*t)
	return d
}

// LeaveForHolders sets a timer for the times of all holders that have none. It
// returns for how long it has to run; 0 if it is not needed.
func (e *Entry) LeaveForHolders(timer string, now time.Time) (d time.Duration) {
	for i := range e.Holders {
		d = max(d, leave(&e.Holders[i].Until, timer, now))
	}
	return d
}

// LeaveForHead does so for the place of the first waiter, also if this request has set
// its time: a caller that does not come back leaves no other request that could. The
// stamp then gets its number when it is written.
func (e *Entry) LeaveForHead(timer string, now time.Time) time.Duration {
	t := &e.Queue.Lapses
	if _, old := StampOf(*t); !old && !t.IsZero() {
		*t = Stamp{}.in(*t)
	}
	return leave(t, timer, now)
}

// LeaveForRecords does so for the records, if there are so many that have no
// timer.
func (e *Entry) LeaveForRecords(timer string, many int, now time.Time) (d time.Duration) {
	alone := 0
	for _, until := range e.Records.Completed {
		if s, ok := StampOf(until); ok && s.Timer == "" {
			alone++
		}
	}
	if alone < many {
		return 0
	}
	for o, until := range e.Records.Completed {
		d = max(d, leave(&until, timer, now))
		e.Records.Completed[o] = until
	}
	return d
}

// LeaveForTrust does so for the quarantine.
func (m *Marker) LeaveForTrust(timer string, now time.Time) time.Duration {
	if m.TrustedFrom.Equal(trustedNever) || m.Guard.Barred() {
		return 0
	}
	return leave(&m.TrustedFrom, timer, now)
}

// Waits reports whether a value has a place in the queue.
func (e *Entry) Waits(value string) bool { return e.Queue.rank(value) > 0 }

// FenceOnly reports whether the fence is all that is stored.
func (e *Entry) FenceOnly() bool {
	return e.Fence != 0 && e.Break == 0 && !e.held() && len(e.Ended) == 0 && e.Queue.empty() && e.Records.empty()
}

// Limit limits what ends only if somebody counts for as long: a process that lives
// for a second counts none of it. It forgets the records that would be forgotten
// first, except the one that is kept, and the values that were released first.
func (e *Entry) Limit(records, ended int, keep string, now time.Time) {
	if more := len(e.Ended) - ended; more > 0 {
		e.Ended = e.Ended[more:]
	}
	if len(e.Records.Completed) <= records {
		return
	}
	all := e.Records.ordered(now) // the one that is forgotten last first
	for i := len(all) - 1; i >= 0 && len(e.Records.Completed) > records; i-- {
		if all[i].Occurrence == keep {
			continue
		}
		delete(e.Records.Completed, all[i].Occurrence)
		e.Records.Since = now // what was completed before may be forgotten
	}
}
