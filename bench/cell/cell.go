// Package cell names what is measured: one contender in one situation. A
// cell's id is what runs it alone.
package cell

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is a situation.
type Kind string

// The situations.
const (
	// Pair is one goroutine that locks and releases, undisturbed.
	Pair Kind = "pair"
	// Own is many goroutines that do so on names of their own.
	Own Kind = "own"
	// Contended is many processes that want the same name.
	Contended Kind = "contended"
	// Waiting is many processes that wait for a name somebody keeps.
	Waiting Kind = "waiting"
	// FrozenPair and FrozenContended are the same with one server stopped.
	FrozenPair      Kind = "frozen-pair"
	FrozenContended Kind = "frozen-contended"
	// Leases is one process that keeps many locks alive.
	Leases Kind = "leases"
)

// Kinds are all of them, in the order in which they are measured.
var Kinds = []Kind{Pair, Own, Contended, Waiting, FrozenPair, FrozenContended, Leases}

// A Cell is one contender in one situation.
type Cell struct {
	Kind Kind `json:"kind"`
	// Count is how many contenders there are, goroutines or leases.
	Count int `json:"count"`
	// Held is how long the lock is held each time, where it is contended.
	Held time.Duration `json:"held_ns"`
	// Nodes is how many servers there are.
	Nodes  int    `json:"nodes"`
	System string `json:"system"`
}

// shape is which parts an id of some kind has, besides kind, nodes and system.
type shape struct{ count, held bool }

var shapes = map[Kind]shape{
	Pair: {}, Own: {count: true}, Contended: {count: true, held: true}, Waiting: {count: true},
	FrozenPair: {}, FrozenContended: {count: true, held: true}, Leases: {count: true},
}

// ID returns the cell's id: contended/16/1ms/5/redlatch.
func (c Cell) ID() string {
	parts := []string{string(c.Kind)}
	s := shapes[c.Kind]
	if s.count {
		parts = append(parts, strconv.Itoa(c.Count))
	}
	if s.held {
		parts = append(parts, fmt.Sprintf("%dms", c.Held.Milliseconds()))
	}
	return strings.Join(append(parts, strconv.Itoa(c.Nodes), c.System), "/")
}

// Parse reads an id.
func Parse(id string) (Cell, error) {
	bad := func(why string) (Cell, error) {
		return Cell{}, fmt.Errorf("no cell %q: %s; an id is like pair/5/redlatch, own/64/1/redsync-rueidis, contended/16/1ms/5/redlatch, waiting/16/5/redlatch or leases/10000/1/redlatch", id, why)
	}
	parts := strings.Split(id, "/")
	c := Cell{Kind: Kind(parts[0])}
	s, ok := shapes[c.Kind]
	if !ok {
		return bad("unknown kind")
	}
	want := 3
	if s.count {
		want++
	}
	if s.held {
		want++
	}
	if len(parts) != want {
		return bad(fmt.Sprintf("it must have %d parts", want))
	}
	rest := parts[1:]
	var err error
	if s.count {
		if c.Count, err = strconv.Atoi(rest[0]); err != nil || c.Count < 1 || c.Count > 100_000 {
			return bad("its count must be from 1 to 100000")
		}
		rest = rest[1:]
	}
	if s.held {
		c.Held, err = time.ParseDuration(rest[0])
		if err != nil || c.Held < 0 || c.Held > time.Minute || c.Held%time.Millisecond != 0 {
			return bad("the time held must be whole milliseconds, up to a minute, like 1ms")
		}
		rest = rest[1:]
	}
	if c.Nodes, err = strconv.Atoi(rest[0]); err != nil || c.Nodes < 1 || c.Nodes > 15 {
		return bad("the number of servers must be from 1 to 15")
	}
	c.System = rest[1]
	return c, nil
}

// threadsOfMany is how many contenders share a process where there are more
// than a machine should have processes for.
const (
	threadsOfMany = 20
	mostProcesses = 128
)

// Processes returns how many processes the contenders are in, and how many
// each.
func (c Cell) Processes() (processes, threads int) {
	if c.Count <= mostProcesses {
		return c.Count, 1
	}
	return (c.Count + threadsOfMany - 1) / threadsOfMany, threadsOfMany
}

// Interleaved reports whether all contenders of the situation are measured in
// turns, in one go, so that they meet the same disturbances.
func (k Kind) Interleaved() bool { return k == Pair || k == Own || k == FrozenPair }
