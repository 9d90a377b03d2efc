package system

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/bench/resp"
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
	loaded, err := w.each("SCRIPT", "LOAD", compareAndDelete)
	if err != nil {
		w.Close()
		return nil, err
	}
	return &plainFloor{wire: w, script: loaded[0].Text}, nil
}

func (f *plainFloor) Lock(_ context.Context, name string) (Held, error) {
	value := newValue()
	set := resp.AppendCommand(nil, "SET", name, value, "NX", "PX", strconv.FormatInt(TTL.Milliseconds(), 10))
	if err := f.round(f.toAll(set), []byte("OK")); err != nil {
		return nil, err
	}
	return floorHeld(func() error {
		return f.round(f.toAll(resp.AppendCommand(nil, "EVALSHA", f.script, "1", name, value)), []byte("1"))
	}), nil
}

func (f *plainFloor) toAll(command []byte) [][]byte {
	list := make([][]byte, len(f.conns))
	for i := range list {
		list[i] = command
	}
	return list
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
	commands [][]byte
}

// tinyScript leaves no trace on the server.
const tinyScript = "return 1"

// OpenRoundTrip connects to the servers.
func OpenRoundTrip(addresses []string) (*RoundTrip, error) {
	w, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	loaded, err := w.each("SCRIPT", "LOAD", tinyScript)
	if err != nil {
		w.Close()
		return nil, err
	}
	r := &RoundTrip{wire: w}
	for range addresses {
		r.commands = append(r.commands, resp.AppendCommand(nil, "EVALSHA", loaded[0].Text, "0"))
	}
	return r, nil
}

// Once takes one round trip.
func (r *RoundTrip) Once() (time.Duration, error) {
	start := time.Now()
	err := r.round(r.commands, []byte("1"))
	return time.Since(start), err
}
