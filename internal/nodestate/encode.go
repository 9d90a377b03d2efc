package nodestate

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file writes entries as bytes, for nodes that store them whole; marker.go does markers.
// Equal states have equal bytes. A state is written and read by the same walk.

// encoding is the version of the format. It is the first byte.
const encoding = 1

var errEncoding = errors.New("the stored state cannot be read: it is damaged, or of a newer release")

// AppendTo appends the entry. Times are in microseconds.
func (e *Entry) AppendTo(b []byte) []byte { return e.encode(b, nil) }

// DecodeEntry reads what AppendTo wrote. No bytes are an entry that was never
// used.
func DecodeEntry(b []byte) (e Entry, err error) {
	if err = e.decode(b, nil); err != nil {
		return Entry{}, err
	}
	return e, nil
}

func (e *Entry) encode(b []byte, s *Sight) []byte {
	c := writing(s)
	e.code(c)
	return c.written(b)
}

// decode reads an entry; no bytes are the zero one.
func (e *Entry) decode(b []byte, s *Sight) error {
	if len(b) == 0 {
		return nil
	}
	c := reading(b, s)
	e.code(c)
	return c.read()
}

func (e *Entry) code(c *codec) {
	list(c, &e.Holders, func(h *node.Holder) {
		c.text(&h.Value)
		number(c, &h.Token)
		c.time(&h.Until)
		c.share(&h.Share)
	})
	number(c, &e.Fence)
	number(c, &e.Floor)
	c.time(&e.FenceUntil)
	number(c, &e.Break)
	number(c, &e.Broken)
	c.time(&e.BreakUntil)
	list(c, &e.Ended, func(x *Ended) {
		c.text(&x.Value)
		c.time(&x.Until)
	})
	q := &e.Queue
	stored := q
	if q.beside != nil { // the waiters are elsewhere
		stored = &Queue{Head: q.Head, Lapses: q.Lapses, Notice: q.Notice}
	}
	stored.code(c)
	e.Records.code(c)
}

func (q *Queue) code(c *codec) {
	list(c, &q.Waiters, func(w *node.Waiter) {
		c.text(&w.Value)
		number(c, &w.Ticket)
		c.share(&w.Share)
	})
	some := !q.empty()
	if c.bool(&some); some {
		c.text(&q.Head)
		c.time(&q.Lapses)
		number(c, &q.Notice)
		c.text(&q.Near)
		c.bool(&q.NearTurn)
		list(c, &q.Called, c.text)
		number(c, &q.Reach)
		c.time(&q.Touched)
	}
}

func (r *Records) code(c *codec) {
	c.time(&r.Begun)
	c.time(&r.Since)
	c.time(&r.Until)
	number(c, &r.Retention)
	c.text(&r.Server)
	c.bool(&r.Whole)
	var occurrences []string
	if len(r.Completed) > 0 {
		occurrences = slices.Sorted(maps.Keys(r.Completed))
	}
	list(c, &occurrences, func(o *string) {
		c.text(o)
		until := r.Completed[*o]
		if c.time(&until); !c.writes {
			r.complete(*o, until)
		}
	})
}

// codec writes values, or reads what it wrote. After an error bad is set, and it
// reads zeros. Codecs are pooled: a request writes and reads several states.
type codec struct {
	b      []byte
	room   []byte // for what is written next
	all    string // what is read, from the first text on: texts share its memory
	writes bool
	bad    bool
	sight  *Sight // how times are read and written where there is no clock; else nil
}

var codecs = sync.Pool{New: func() any { return new(codec) }}

// format returns the first byte.
func format(s *Sight) byte {
	if s != nil {
		return observedEncoding
	}
	return encoding
}

// writing returns a codec that writes a state.
func writing(s *Sight) *codec {
	c := codecs.Get().(*codec)
	c.b, c.writes, c.sight = append(c.room[:0], format(s)), true, s
	return c
}

// written appends what was written.
func (c *codec) written(b []byte) []byte {
	b = append(b, c.b...)
	c.reuse(c.b)
	return b
}

// reading returns a codec that reads a state.
func reading(b []byte, s *Sight) *codec {
	c := codecs.Get().(*codec)
	c.b, c.bad, c.sight = b[1:], b[0] != format(s), s
	return c
}

// read returns an error if what was read is no state.
func (c *codec) read() (err error) {
	if c.bad || len(c.b) > 0 {
		err = errEncoding
	}
	c.reuse(c.room)
	return err
}

func (c *codec) reuse(room []byte) {
	*c = codec{room: room}
	codecs.Put(c)
}

func (c *codec) fail() { c.b, c.bad = nil, true }

// number writes or reads a number.
func number[T ~int | ~int64 | ~uint64 | ~uint8](c *codec, x *T) {
	if c.writes {
		c.b = binary.AppendVarint(c.b, int64(*x))
		return
	}
	v, n := binary.Varint(c.b)
	if n <= 0 || int64(T(v)) != v {
		c.fail()
		return
	}
	*x, c.b = T(v), c.b[n:]
}

// list writes or reads a list, whose elements have a byte at least.
func list[S ~[]T, T any](c *codec, all *S, each func(*T)) {
	n := c.size(len(*all))
	if !c.writes && n > 0 {
		*all = make(S, n)
	}
	for i := range *all {
		each(&(*all)[i])
	}
}

// size writes or reads how many bytes or elements follow.
func (c *codec) size(n int) int {
	number(c, &n)
	if !c.writes && (n < 0 || n > len(c.b)) {
		c.fail()
		return 0
	}
	return n
}

func (c *codec) text(s *string) {
	n := c.size(len(*s))
	if c.writes {
		c.b = append(c.b, *s...)
		return
	}
	if n == 0 {
		*s = ""
		return
	}
	if c.all == "" {
		c.all = string(c.b)
	}
	at := len(c.all) - len(c.b)
	*s, c.b = c.all[at:at+n], c.b[n:]
}

func (c *codec) bool(x *bool) {
	var n uint8
	if *x {
		n = 1
	}
	number(c, &n)
	*x = n != 0
}

// time writes or reads a time; 0 is none.
func (c *codec) time(t *time.Time) {
	if c.sight != nil {
		c.seen(t)
		return
	}
	var us int64
	if !t.IsZero() {
		us = t.UnixMicro()
	}
	number(c, &us)
	if !c.writes && us != 0 {
		*t = time.UnixMicro(us)
	}
}

func (c *codec) share(s *node.Share) {
	number(c, &s.Mode)
	number(c, &s.Slots)
	number(c, &s.Slot)
	if !c.writes && s.Check() != nil {
		c.fail()
	}
}
