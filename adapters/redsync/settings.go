package redsync

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
)

// ownDrift is the part of a time to live that redlatch allows clocks to drift
// apart, besides 2 ms.
const ownDrift = 0.01

// Limits of what redlatch accepts.
const (
	minExpiry = 10 * time.Millisecond
	minLimit  = time.Millisecond
	maxLimit  = time.Minute
	maxDelay  = time.Hour
)

// Without an option, a server may take a tenth of the expiry to answer, within
// these limits.
const (
	leastLimit = 250 * time.Millisecond
	mostLimit  = 2 * time.Second
)

// Without an option, the delay between two tries is a random one in between.
const (
	leastDelay = 50 * time.Millisecond
	mostDelay  = 250 * time.Millisecond
)

// session returns the client that the options of the mutex need, or an error
// for the first option that is not valid.
func (m *Mutex) session() (*session, error) {
	var want settings
	if m.genValue {
		return nil, &redlatch.ConfigError{Field: "WithGenValueFunc", Value: "a function", Bound: "left out: redlatch makes the values itself, since they name the owner of the lock"}
	}
	if m.expiry < minExpiry || m.expiry > maxExpiry {
		return nil, &redlatch.ConfigError{Field: "WithExpiry", Value: m.expiry, Bound: fmt.Sprintf("between %v and %v", minExpiry, maxExpiry)}
	}
	if f := m.driftFactor; f != nil && !(*f >= 0 && *f < 1) {
		return nil, &redlatch.ConfigError{Field: "WithDriftFactor", Value: *f, Bound: "from 0 to less than 1"}
	}
	if f := m.timeoutFactor; f != nil {
		if limit := *f * float64(m.expiry); !(limit >= float64(minLimit) && limit <= float64(maxLimit)) {
			return nil, &redlatch.ConfigError{Field: "WithTimeoutFactor", Value: *f, Bound: fmt.Sprintf("a part of the expiry of %v from %v to %v", m.expiry, minLimit, maxLimit)}
		}
		want.limit = m.limit()
	}
	if m.delayFunc != nil {
		want.delay = roundDown(min(max(m.delayFunc(1), time.Millisecond), maxDelay))
	}
	return m.rs.session(want)
}

// limit returns how long a server may take to answer.
func (m *Mutex) limit() time.Duration {
	if m.timeoutFactor != nil {
		return min(roundUp(time.Duration(*m.timeoutFactor*float64(m.expiry))), maxLimit)
	}
	return min(max(m.expiry/10, leastLimit), mostLimit) // redlatch's default
}

// roundUp and roundDown return a duration near d. There are few of them, and so
// few clients, even if a program computes its expiries or draws its delays at
// random.
func roundUp(d time.Duration) time.Duration {
	step := time.Duration(1) << max(bits.Len64(uint64(d))-4, 0)
	return (d + step - 1) / step * step
}

func roundDown(d time.Duration) time.Duration {
	return time.Millisecond << (bits.Len64(uint64(d/time.Millisecond)) - 1)
}

// Lock asks for patience in pieces, so that one who wants to try for ever need
// not have all delays computed.
const (
	pieceTries = 256
	pieceWait  = time.Hour
)

// patience returns how long to wait for the lock: the sum of the delays before
// each try after the next one. It moves next beyond the tries that are covered.
func (m *Mutex) patience(next *int, tries int) time.Duration {
	var wait time.Duration
	first := *next
	for *next++; *next < tries && *next-first < pieceTries && wait < pieceWait; *next++ {
		wait += max(m.delay(*next), 0)
	}
	if wait <= 0 {
		*next = first + 1
	}
	return wait
}

// delay returns how long to wait before a try.
func (m *Mutex) delay(try int) time.Duration {
	if m.delayFunc != nil {
		return min(m.delayFunc(try), pieceWait)
	}
	return leastDelay + rand.N(mostDelay-leastDelay)
}

// handlePrefix begins a handle of redlatch: the text of a lease.
const handlePrefix = "redlatch1."

// lock is what a handle has of a lock.
type lock struct {
	Name  string        `json:"name"`
	Key   string        `json:"key"`
	Value string        `json:"value"`
	Token string        `json:"token"`
	TTL   time.Duration `json:"ttl_ns"`

	Held    int64         `json:"held_us"`
	MaxHold time.Duration `json:"max_hold_ns"`
}

// longest is how long a lock may be held of which only the value is known: redsync
// has no limit.
const longest = 30 * 24 * time.Hour

// handle returns the handle of a lock of which the value is known. The token is the
// lowest: it raises no fence, and servers compare the value.
func (m *Mutex) handle(value string) string {
	text, err := json.Marshal(lock{Name: m.name, Key: m.rs.opts.Prefix + m.name, Value: value, Token: "1", TTL: m.expiry,
		Held: time.Now().Add(longest).UnixMicro(), MaxHold: longest})
	if err != nil {
		panic("redsync: a lock is strings and a number: " + err.Error())
	}
	return handlePrefix + base64.RawURLEncoding.EncodeToString(text)
}

// valueOf returns the value under which the servers know a lease.
func valueOf(lease *redlatch.Lease) string {
	var l lock
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(lease.Handle(), handlePrefix))
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil || l.Value == "" {
		panic(fmt.Sprintf("redsync: the handle of a lease has no value: %v", err))
	}
	return l.Value
}

// aboutValue explains the error of a value that is none of redlatch's.
func (m *Mutex) aboutValue(err error) error {
	if bad, ok := errors.AsType[*redlatch.ConfigError](err); ok && bad.Field == "handle" {
		return &redlatch.ConfigError{Field: "WithValue", Value: fmt.Sprintf("%d bytes", len(m.Value())), Bound: "what Value of this package returned: a lock of redsync's own package cannot be unlocked or extended here"}
	}
	return err
}
