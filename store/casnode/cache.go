package casnode

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file has requests that write without a read before it, to a Stamper or to a
// store without a clock. What the node remembers may be wrong, and decides nothing:
// the write compares the row's version, the marker's, the identity and the clock, if
// there is one, and is refused if one of them is not as remembered. So when it
// succeeds, all of it was true at that moment.
//
// On a store without a clock, what is remembered is as good as what a read would
// return now: the row was written before now, so its times may count from now, and
// those that this process has observed for longer end when they did. A row with
// timers is not remembered: they end without a write.
//
// On a Stamper, the times in the row count from the clock of the write, not from a
// remembered one: a row that expires before its holder believes so has a second
// holder. The node does not know that clock, but only that it is in a span of time. So
// it decides for the beginning of the span and for its end. If both give the same row,
// with all times later by just the span, that row is right for every moment in
// between, and the store adds by how much the write was later than the beginning.
//
// Where others write too, the cache is wrong, and a try costs a round trip. Such a
// name is read before its writes for a while.

const (
	// mostRows is how many rows are remembered, of mostState bytes at most.
	mostRows, mostState = 1024, 4096
	// clockAge is after how long the store's clock is read again.
	clockAge = time.Minute
	// readFor is for how long a name is read first after the cache was wrong about it.
	readFor = time.Second
	// placesAge is for how long places are remembered: callers leave. patientAge is the
	// same if the first has time left. If it leaves all the same, the one that keeps the
	// name for it sees that after its write.
	placesAge, patientAge = 5 * time.Millisecond, time.Second
	// farFor is for how long all are, after a write came later than the span: the
	// store is far away, or its clock was set.
	farFor = 10 * time.Second
)

// cache is what the node remembers of a store.
type cache struct {
	stamps bool                 // the store is a Stamper
	placed bool                 // and a Placer
	uptime func() time.Duration // a monotonic clock

	mu   sync.Mutex    // guards all fields below
	seen Snapshot      // of the last read: the marker, the identity and the clock
	at   time.Duration // when it was read
	rows map[string]lastWrite
	far  time.Duration // nothing is recalled before
	// unused says that the last name which was new to this node had no row. Then
	// the next one will have none either.
	unused bool
}

// lastWrite is the row that this node wrote last; without a version if the name
// has to be read first.
type lastWrite struct {
	row Row
	// places are the first of the queue, as they were at the time at, where it is in
	// places. turn says that the row was in a wake: it is kept for us.
	places []Place
	at     time.Duration
	turn   bool
	// notBefore is until when others write the row, as far as is known.
	notBefore time.Duration
}

// read notes what was read of a name.
func (m *cache) read(name string, s Snapshot) {
	if !m.stamps && s.by == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.rows[name]; !known && name != MarkerName {
		m.unused = s.Row.Version == ""
		m.set(name, lastWrite{})
	}
	if marker, err := s.Marker.marker(); s.by == nil && err == nil {
		s.decoded = &marker
	}
	s.Row = Row{}
	m.seen, m.at = s, m.uptime()
}

// wrote notes a row that this node wrote. One that is timed has to be read.
func (m *cache) wrote(row Row, places []Place, timed bool) {
	if row.Name == MarkerName {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, before := m.uptime(), m.rows[row.Name].notBefore
	if !m.stamps && m.seen.by == nil || now < before && !m.placed {
		return
	}
	if timed || len(row.State) > mostState {
		row.Version, row.State = "", nil
	}
	m.set(row.Name, lastWrite{row: row, places: places, at: now, notBefore: before})
}

// turn notes the row that a wake has: it is kept for that place.
func (m *cache) turn(row Row, p Place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stamps || m.seen.by != nil && !m.timed(row) {
		m.set(row.Name, lastWrite{row: row, places: []Place{p}, at: m.uptime(), turn: true, notBefore: m.rows[row.Name].notBefore})
	}
}

// timed reports whether a row refers to a timer.
func (m *cache) timed(row Row) (timed bool) {
	var e nodestate.Entry
	err := e.DecodeSeen(row.State, &nodestate.Sight{Left: func(s nodestate.Stamp, left time.Duration) time.Duration {
		timed = timed || s.Timer != ""
		return left
	}})
	return timed || err != nil
}

// crowd notes that others want a name: whoever comes puts a place at once.
func (m *cache) crowd(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.rows[name]
	last.notBefore = m.uptime() + readFor
	m.set(name, last)
}

// crowded reports whether others want a name, as far as is known.
func (m *cache) crowded(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.placed && m.uptime() < m.rows[name].notBefore
}

// wrong notes that a write from the cache was refused: it was late, or else another one
// has written the row since.
func (m *cache) wrong(row Row, late bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if late {
		m.far = m.uptime() + farFor
		return
	}
	m.unused = m.unused && row.Version != ""
	m.set(row.Name, lastWrite{notBefore: m.uptime() + readFor})
}

func (m *cache) set(name string, w lastWrite) {
	if m.rows == nil || len(m.rows) >= mostRows {
		m.rows = map[string]lastWrite{}
	}
	m.rows[name] = w
}

// recall returns what the store has, if the cache is right. Its clock is the
// earliest that it may show. The next request for that name has to read, unless
// this one writes.
func (m *cache) recall(req node.Request) (s Snapshot, ok bool) {
	name := req.Name
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.uptime()
	elapsed := now - m.at
	last, known := m.rows[name]
	switch {
	case elapsed > clockAge || now < m.far || known && last.row.Version == "" || !known && !m.unused:
		return s, false
	case now < last.notBefore && req.Op == node.OpAcquire && !last.turn:
		return s, false // others want it
	case m.placed && now < last.notBefore && !last.turn && (len(last.places) == 0 || now-last.at > placesAge && !m.patient(last, now)):
		return s, false // who waits may be another one
	}
	m.set(name, lastWrite{notBefore: last.notBefore})
	s, s.Row, s.Places, s.recalled = m.seen, last.row, last.places, true
	s.Row.Name = name
	s.Now = s.Now.Add((elapsed - elapsed/1000).Truncate(time.Microsecond)) // clocks differ in their rates
	return s, true
}

// patient reports whether the first of some places has time left.
func (m *cache) patient(last lastWrite, now time.Duration) bool {
	w, err := last.places[0].waiter()
	return m.stamps && err == nil && now-last.at <= patientAge && nodestate.InTime(m.seen.Now.Add(now-m.at), w)
}

// foresee executes a request without a read, if it can. If the cache was wrong it
// returns the present snapshot; none if it did not try.
func (n *Node) foresee(ctx context.Context, req node.Request) (present Snapshot, reply node.Reply, done bool, err error) {
	if req.Op != node.OpAcquire && req.Op != node.OpExtend && req.Op != node.OpRelease ||
		req.Op == node.OpRelease && n.queue.placed(waiter{req.Name, req.Value}) { // which leaves its place first
		return present, reply, false, nil
	}
	by := n.prepared.Load()
	s, ok := n.cache.recall(req)
	if !ok || by == 0 || n.look(&s) != nil {
		return present, reply, false, nil
	}
	s.judgeBy(req)
	d, ok := n.decideAhead(s, req)
	if !ok {
		return present, reply, false, nil
	}
	done, present, err = n.swap(ctx, s, req, d, s.by == nil)
	switch {
	case err != nil:
		return Snapshot{}, reply, false, err
	case done:
		n.follow(ctx, req, &d, present)
		n.sweepSometimes(ctx, req.Name, s)
	default:
		n.cache.wrong(s.Row, s.by == nil && present.Server != "" && s.Row.Version == present.Row.Version)
	}
	return present, d.reply, done, nil
}

// decideAhead decides a request for every moment from s.Now to the end of the span,
// or for now if the store has no clock. The row to write has times that count from
// s.Now. It is not ok if the moment matters, or if there is nothing to write: then
// only a read is sure.
func (n *Node) decideAhead(s Snapshot, req node.Request) (d decision, ok bool) {
	if s.by != nil {
		// The end of a quarantine is written after a read: see noteTrusted.
		if _, err := s.marker(); err != nil || s.overdue {
			return d, false
		}
		d, err := n.decide(s, req)
		return d, err == nil && d.row != nil && len(d.timers) == 0
	}
	marker, lost := s.marker()
	e, err := s.stored()
	if err != nil || lost != nil || s.KeepsFences || crowded(&e, req) != nil {
		return d, false
	}
	// The row may have been written up to a span later than the cache has it. So
	// nothing in it may have expired even at the end.
	var room [3][256]byte
	later, before := s, e.AppendTo(room[0][:0])
	later.Now, later.begins = s.Now.Add(Span), s.Now
	if e.Settle(later.Now); !bytes.Equal(before, e.AppendTo(room[1][:0])) {
		return d, false
	}
	server, last := nodestate.Server{ID: s.Server, Marker: marker, Silent: n.ears.store == nil}, e.Clone()
	d = n.apply(&s, &server, &e, req)
	n.apply(&later, &server, &last, req)
	d.row = &Row{Name: req.Name, State: e.AppendTo(nil)}
	if bytes.Equal(before, d.row.State) || bytes.Equal(before, last.AppendTo(room[1][:0])) {
		return d, false
	}
	last.Move(-Span)
	return d, bytes.Equal(d.row.State, last.AppendTo(room[2][:0]))
}

// stampSize is how many bytes a stamp has. The first is 0, which no state begins
// with.
const stampSize = 8

// unstamp returns by how much a row was written later than its times say, and its
// state without that.
func unstamp(state []byte) (late time.Duration, rest []byte) {
	if len(state) < stampSize || state[0] != 0 {
		return 0, state
	}
	return time.Duration(binary.BigEndian.Uint64(state)) * time.Microsecond, state[stampSize:]
}
