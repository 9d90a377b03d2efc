package system

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"
)

// compareAndDelete is the least that a safe release needs.
const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// plainFloor is the plain lock: SET NX PX, compare and delete.
type plainFloor struct {
	*wire
	script string // the digest of compareAndDelete
}

func openPlainFloor(_ context.Context, addresses []string) (Locker, error) {
	w, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	script, err := w.load(compareAndDelete)
	if err != nil {
		w.Close()
		return nil, err
	}
	return &plainFloor{w, script}, nil
}

func (f *plainFloor) Lock(_ context.Context, name string) (Held, error) {
	value := newValue()
	set := []string{"SET", name, value, "NX", "PX", strconv.FormatInt(TTL.Milliseconds(), 10)}
	if err := f.round(says("OK"), func(int) []string { return set }); err != nil {
		return nil, err
	}
	return floorHeld(func() error {
		free := []string{"EVALSHA", f.script, "1", name, value}
		return f.round(says("1"), func(int) []string { return free })
	}), nil
}

// floorHeld is a lock on raw connections, whose release needs no context.
type floorHeld func() error

func (f floorHeld) Release() error { return f() }

// newValue returns 128 random bits, as every contender makes them.
func newValue() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// RoundTrip measures one round trip of a tiny script over raw sockets to all
// the servers, until a majority has answered.
type RoundTrip struct {
	*wire
	command []string
}

// OpenRoundTrip connects to the servers.
func OpenRoundTrip(addresses []string) (*RoundTrip, error) {
	w, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	script, err := w.load("return 1") // leaves no trace on the server
	if err != nil {
		w.Close()
		return nil, err
	}
	return &RoundTrip{w, []string{"EVALSHA", script, "0"}}, nil
}

// Once takes one round trip.
func (r *RoundTrip) Once() (time.Duration, error) {
	start := time.Now()
	err := r.round(says("1"), func(int) []string { return r.command })
	return time.Since(start), err
}
