package system

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// scriptFloor sends over raw sockets what redlatch was seen to send: the same
// scripts with the same arguments, but for values, tokens and times, which are
// made anew for each pair.
type scriptFloor struct {
	*wire
	seen    *learned
	granted []byte // what the servers answer when they have granted
	freed   []byte // and when they have released

	lastToken int64
	// acquire is how long the last acquire took: the round trip that a
	// hand-over is held against.
	acquire time.Duration
}

func openScriptFloor(ctx context.Context, addresses []string) (Locker, error) {
	w, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	f := &scriptFloor{wire: w}
	if err := f.learn(ctx, addresses); err != nil {
		w.Close()
		return nil, fmt.Errorf("floor of redlatch's scripts: %w", err)
	}
	return f, nil
}

// floorName is the lock that is learned from and taken. It is the floor's own:
// names cannot be put into keys that are not understood.
const floorName = "bench/floor"

// learn watches redlatch take and release the lock, and then does so itself,
// to know what a server answers. That the replayed scripts took the lock and
// freed it is seen by the key.
func (f *scriptFloor) learn(ctx context.Context, addresses []string) error {
	var err error
	if f.seen, err = watchRedlatch(ctx, addresses, floorName); err != nil {
		return err
	}
	f.renew()
	status := func(parts [][]*template, exists string) ([]byte, error) {
		var last []byte
		for _, round := range parts {
			for i, c := range f.conns {
				if err := c.Send(round[i].text); err != nil {
					return nil, err
				}
				got, err := c.First()
				if err != nil {
					return nil, err
				}
				if i > 0 && !bytes.Equal(got, last) {
					return nil, fmt.Errorf("servers answer %q and %q", last, got)
				}
				last = bytes.Clone(got)
			}
		}
		replies, err := f.each("EXISTS", floorName)
		for i, r := range replies {
			if r.Text != exists {
				return nil, fmt.Errorf("server %d answered %q, and the key of the lock exists: %s", i, last, r.Text)
			}
		}
		return last, err
	}
	if f.granted, err = status(f.seen.acquire, "1"); err != nil {
		return err
	}
	f.freed, err = status(f.seen.release, "0")
	return err
}

func (f *scriptFloor) Lock(context.Context, string) (Held, error) {
	f.renew()
	start := time.Now()
	for _, round := range f.seen.acquire {
		if err := f.round(texts(round), f.granted); err != nil {
			return nil, err
		}
	}
	f.acquire = time.Since(start)
	return floorHeld(func() error {
		for _, round := range f.seen.release {
			if err := f.round(texts(round), f.freed); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

func texts(round []*template) [][]byte {
	list := make([][]byte, len(round))
	for i, t := range round {
		list[i] = t.text
	}
	return list
}

// renew writes fresh values, tokens and times into all commands.
func (f *scriptFloor) renew() {
	var value [hexDigits]byte
	var random [hexDigits / 2]byte
	rand.Read(random[:])
	hex.Encode(value[:], random[:])
	// Tokens grow, and are about the time in microseconds.
	f.lastToken = max(f.lastToken+1, time.Now().UnixMicro())
	var number [20]byte
	digits := strconv.AppendInt(number[:0], f.lastToken, 10)
	for _, h := range f.seen.holes {
		switch h.kind {
		case holeValue:
			copy(h.text, value[:])
		case holeNumber:
			for i := range h.text {
				h.text[i] = '0'
			}
			copy(h.text[len(h.text)-len(digits):], digits)
		}
	}
}

// LastAcquire returns how long the acquire of the last lock took, if this is
// the floor that sends redlatch's scripts.
func LastAcquire(l Locker) (time.Duration, bool) {
	f, ok := l.(*scriptFloor)
	if !ok {
		return 0, false
	}
	return f.acquire, true
}
