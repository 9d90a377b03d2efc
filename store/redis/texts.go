package redis

import (
	"strconv"
	"sync/atomic"
	"time"
)

// milliseconds rounds up: a lock may live longer than asked for, never
// shorter.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

func microseconds(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// lastText is a duration as text. Most requests have the same ones, so the last
// is kept.
type lastText struct {
	format func(time.Duration) string
	last   atomic.Pointer[durationText]
}

type durationText struct {
	d time.Duration
	s string
}

// The durations that most requests have.
var (
	ttls       = lastText{format: milliseconds}
	retentions = lastText{format: milliseconds}
	windows    = lastText{format: microseconds}
)

func (l *lastText) text(d time.Duration) string {
	if t := l.last.Load(); t != nil && t.d == d {
		return t.s
	}
	t := &durationText{d, l.format(d)}
	l.last.Store(t)
	return t.s
}
