// Package cell names what is measured: one contender in one situation. A
// cell's id runs it alone.
package cell

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/bench/link"
	"github.com/redlatch/redlatch/bench/system"
)

// Kind is a situation.
type Kind string

// The situations, in the order in which they are measured.
const (
	// Pair is one goroutine that locks and releases, undisturbed.
	Pair Kind = "pair"
	// Own is many goroutines that do so on names of their own.
	Own Kind = "own"
	// Contended is many processes that want the same name.
	Contended Kind = "contended"
	// Waiting is many processes that wait for a name that is held all the time.
	Waiting Kind = "waiting"
	// FrozenPair and FrozenContended are the same with one server frozen.
	FrozenPair      Kind = "frozen-pair"
	FrozenContended Kind = "frozen-contended"
	// Scripts is raw sockets that send what a pair takes.
	Scripts Kind = "scripts"
	// LinkedPair and LinkedContended are the same over links that take a
	// millisecond there and back; SlowPair and SlowContended with one link of 20 ms,
	// LossyPair with links that are lost now and then.
	LinkedPair      Kind = "linked-pair"
	LinkedContended Kind = "linked-contended"
	SlowPair        Kind = "slow-pair"
	SlowContended   Kind = "slow-contended"
	LossyPair       Kind = "lossy-pair"
	// Leases is one process that keeps many locks alive.
	Leases Kind = "leases"
)

// A Cell is one contender in one situation.
type Cell struct {
	Kind Kind
	// Count is how many contenders, goroutines or leases there are; 0 in a Pair.
	Count int
	// Held is how long the lock is held each time, where it is contended.
	Held time.Duration
	// Nodes is how many servers there are.
	Nodes  int
	System *system.System
}

// ID returns the cell's id, such as contended/16/1ms/5/redlatch.
func (c Cell) ID() string {
	parts := []string{string(c.Kind)}
	if c.Count > 0 {
		parts = append(parts, fmt.Sprint(c.Count))
	}
	if c.Kind.Contends() {
		parts = append(parts, fmt.Sprintf("%dms", c.Held.Milliseconds()))
	}
	return strings.Join(append(parts, fmt.Sprint(c.Nodes), c.System.Key), "/")
}

// With more contenders than mostProcesses, so many of them share a process.
const (
	mostProcesses = 128
	threadsOfMany = 20
)

// Processes returns how many processes the contenders are in, and how many
// contenders there are in each.
func (c Cell) Processes() (processes, threads int) {
	if c.Count <= mostProcesses {
		return c.Count, 1
	}
	return (c.Count + threadsOfMany - 1) / threadsOfMany, threadsOfMany
}

// Pairs reports whether one goroutine locks and releases, undisturbed by others.
func (k Kind) Pairs() bool {
	return k == Pair || k == Scripts || k == FrozenPair || k == LinkedPair || k == SlowPair || k == LossyPair
}

// Contends reports whether many processes want the same name.
func (k Kind) Contends() bool {
	return k == Contended || k == FrozenContended || k == LinkedContended || k == SlowContended
}

// Interleaved reports whether all contenders of the situation are measured
// together, in turns, so that they meet the same disturbances.
func (k Kind) Interleaved() bool { return k.Pairs() || k == Own }

// Frozen reports whether one server is frozen.
func (k Kind) Frozen() bool { return k == FrozenPair || k == FrozenContended }

// The network of the linked cells.
const (
	linkDelay, slowDelay = time.Millisecond, 20 * time.Millisecond
	loseEvery, loseFor   = time.Second, 200 * time.Millisecond
)

// Network returns the links to a number of servers; false if there are none.
func (k Kind) Network(nodes int) (link.Config, bool) {
	var c link.Config
	switch k {
	case LinkedPair, LinkedContended, SlowPair, SlowContended, LossyPair:
	default:
		return c, false
	}
	for range nodes {
		c.Delays = append(c.Delays, linkDelay)
	}
	switch k {
	case SlowPair, SlowContended:
		c.Delays[nodes-1] = slowDelay
	case LossyPair:
		c.LoseEvery, c.LoseFor = loseEvery, loseFor
	}
	return c, true
}
