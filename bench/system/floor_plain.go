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

// plainFloor is the plain lock: SET NX PX, compare and delete. It takes some
// locks at once.
type plainFloor struct {
	*wire
	script string // the digest of compareAndDelete
	locks  int
}

func openPlainFloor(locks int) func(context.Context, []string) (Locker, error) {
	return func(_ context.Context, addresses []string) (Locker, error) {
		w, err := dialAll(addresses)
		if err != nil {
			return nil, err
		}
		script, err := w.load(compareAndDelete)
		if err != nil {
			w.Close()
			return nil, err
		}
		return &plainFloor{w, script, locks}, nil
	}
}

func (f *plainFloor) Lock(_ context.Context, name string) (Held, error) {
	set, free := make([][]string, f.locks), make([][]string, f.locks)
	for i := range f.locks {
		name, value := numbered(name, i), newValue()
		set[i] = []string{"SET", name, value, "NX", "PX", strconv.FormatInt(TTL.Milliseconds(), 10)}
		free[i] = []string{"EVALSHA", f.script, "1", name, value}
	}
	if err := f.round(f.locks, says("OK"), func(_, i int) []string { return set[i] }); err != nil {
		return nil, err
	}
	return floorHeld(func() error {
		return f.round(f.locks, says("1"), func(_, i int) []string { return free[i] })
	}), nil
}

// numbered returns the name of one of several locks that are taken at once.
func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(i)
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
	err := r.round(1, says("1"), func(int, int) []string { return r.command })
	return time.Since(start), err
}
