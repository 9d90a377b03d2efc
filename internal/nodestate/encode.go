package nodestate

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file writes entries and markers as bytes, for nodes that store them whole.
// Equal states have equal bytes.

// encoding is the version of the format. It is the first byte.
const encoding = 1

var errEncoding = errors.New("the stored state cannot be read: it is damaged, or of a newer release")

// AppendTo appends the entry. Times are in microseconds.
func (e *Entry) AppendTo(b []byte) []byte {
	w := encoder{append(b, encoding)}
	w.int(int64(len(e.Holders)))
	for _, h := range e.Holders {
		w.text(h.Value)
		w.int(int64(h.Token))
		w.time(h.Until)
		w.share(h.Share)
	}
	w.int(int64(e.Fence))
	w.int(int64(e.Floor))
	w.time(e.FenceUntil)
	w.time(e.Released)
	q := &e.Queue
	w.int(int64(len(q.Waiters)))
	for _, x := range q.Waiters {
		w.text(x.Value)
		w.int(x.Ticket)
		w.share(x.Share)
	}
	if len(q.Waiters) > 0 {
		w.text(q.Head)
		w.time(q.Lapses)
		w.int(int64(q.Notice))
		w.text(q.Near)
		w.bool(q.NearTurn)
		w.int(int64(len(q.Called)))
		for _, v := range q.Called {
			w.text(v)
		}
		w.int(int64(q.Reach))
		w.time(q.Touched)
	}
	m := &e.Marks
	w.time(m.Since)
	w.time(m.Until)
	w.int(int64(len(m.Done)))
	for _, o := range slices.Sorted(maps.Keys(m.Done)) {
		w.text(o)
		w.time(m.Done[o])
	}
	return w.b
}

// DecodeEntry reads what AppendTo wrote. No bytes are an entry that was never
// used.
func DecodeEntry(b []byte) (e Entry, err error) {
	if len(b) == 0 {
		return e, nil
	}
	r := decoder{b: b[1:], bad: b[0] != encoding}
	for range r.count() {
		e.Holders = append(e.Holders, node.Holder{Value: r.text(), Token: node.Token(r.int()), Until: r.time(), Share: r.share()})
	}
	e.Fence, e.Floor, e.FenceUntil, e.Released = node.Token(r.int()), node.Token(r.int()), r.time(), r.time()
	q := &e.Queue
	for range r.count() {
		q.Waiters = append(q.Waiters, node.Waiter{Value: r.text(), Ticket: r.int(), Share: r.share()})
	}
	if len(q.Waiters) > 0 {
		q.Head, q.Lapses, q.Notice, q.Near, q.NearTurn = r.text(), r.time(), Notice(r.int()), r.text(), r.bool()
		for range r.count() {
			q.Called = append(q.Called, r.text())
		}
		q.Reach, q.Touched = int(r.int()), r.time()
	}
	m := &e.Marks
	m.Since, m.Until = r.time(), r.time()
	for range r.count() {
		if m.Done == nil {
			m.Done = map[string]time.Time{}
		}
		o := r.text()
		m.Done[o] = r.time()
	}
	if r.bad || len(r.b) > 0 {
		return Entry{}, errEncoding
	}
	return e, nil
}

// AppendTo appends the marker.
func (m *Marker) AppendTo(b []byte) []byte {
	w := encoder{append(b, encoding)}
	g := &m.Guard
	w.text(m.ID)
	w.text(g.List)
	w.text(g.Nodes)
	w.int(int64(g.MaxTTL))
	w.int(int64(g.Window))
	w.int(int64(g.Quarantine))
	w.int(int64(g.Replicas))
	w.int(int64(g.ReplicaLag))
	w.time(m.TrustedFrom)
	w.text(m.Reason)
	return w.b
}

// DecodeMarker reads what AppendTo wrote. No bytes are no marker.
func DecodeMarker(b []byte) (m Marker, err error) {
	if len(b) == 0 {
		return m, nil
	}
	r := decoder{b: b[1:], bad: b[0] != encoding}
	m.ID = r.text()
	m.Guard = node.Guard{List: r.text(), Nodes: r.text(), MaxTTL: time.Duration(r.int()), Window: time.Duration(r.int()),
		Quarantine: time.Duration(r.int()), Replicas: int(r.int()), ReplicaLag: time.Duration(r.int())}
	m.TrustedFrom, m.Reason = r.time(), r.text()
	if r.bad || len(r.b) > 0 {
		return Marker{}, errEncoding
	}
	return m, nil
}

// Over returns when nothing of the entry matters any more.
func (e *Entry) Over() (t time.Time) {
	t = later(e.FenceUntil, e.Marks.Until)
	for _, h := range e.Holders {
		t = later(t, h.Until)
	}
	for _, until := range e.Marks.Done {
		t = later(t, until)
	}
	if !e.Queue.empty() {
		t = later(t, e.Queue.Touched.Add(queueRetention))
	}
	return t
}

type encoder struct{ b []byte }

func (w *encoder) int(x int64) { w.b = binary.AppendVarint(w.b, x) }

func (w *encoder) text(s string) {
	w.int(int64(len(s)))
	w.b = append(w.b, s...)
}

func (w *encoder) bool(x bool) {
	if x {
		w.int(1)
	} else {
		w.int(0)
	}
}

// time writes a time; 0 is none.
func (w *encoder) time(t time.Time) {
	if t.IsZero() {
		w.int(0)
	} else {
		w.int(t.UnixMicro())
	}
}

func (w *encoder) share(s node.Share) { w.b = append(w.b, byte(s.Mode), s.Slots, s.Slot) }

// decoder reads what an encoder wrote. After an error bad is set, and it returns
// zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (r *decoder) fail() { r.b, r.bad = nil, true }

func (r *decoder) int() int64 {
	x, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return x
}

// count reads the number of parts that follow, each of a byte at least.
func (r *decoder) count() int64 {
	n := r.int()
	if n < 0 || n > int64(len(r.b)) {
		r.fail()
		return 0
	}
	return n
}

func (r *decoder) text() string {
	n := r.count()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *decoder) bool() bool { return r.int() != 0 }

func (r *decoder) time() time.Time {
	us := r.int()
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func (r *decoder) share() node.Share {
	if len(r.b) < 3 {
		r.fail()
		return node.Share{}
	}
	s := node.Share{Mode: node.Mode(r.b[0]), Slots: r.b[1], Slot: r.b[2]}
	r.b = r.b[3:]
	if s.Check() != nil {
		r.fail()
	}
	return s
}
