package runner

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// randSource is a client's source of randomness, for the values of its locks and
// the delays between rounds. It is the system's, unless the caller's clock is a
// source too.
type randSource struct{ source rand.Source }

// simulatedClock is a deterministic clock that also supplies randomness. No other
// clock has this method by accident: values must be unique wherever locks are not
// simulated.
type simulatedClock interface {
	Clock
	RandSource() rand.Source
}

func newRandSource(clock Clock) randSource {
	if c, ok := clock.(simulatedClock); ok {
		return randSource{c.RandSource()}
	}
	return randSource{}
}

// value fills b with random bytes that nobody can guess.
func (c randSource) value(b *[16]byte) {
	if c.source == nil {
		cryptorand.Read(b[:])
		return
	}
	binary.BigEndian.PutUint64(b[:8], c.source.Uint64())
	binary.BigEndian.PutUint64(b[8:], c.source.Uint64())
}

// below returns a duration from 0 up to, but not including, d.
func (c randSource) below(d time.Duration) time.Duration {
	if c.source == nil {
		return rand.N(d)
	}
	return time.Duration(c.source.Uint64() % uint64(d))
}
