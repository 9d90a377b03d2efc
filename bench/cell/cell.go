// Package cell names what is measured: one contender in one situation. A
// cell's id runs it alone.
package cell

import (
	"fmt"
	"strings"
	"time"

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
	if c.Kind == Contended || c.Kind == FrozenContended {
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

// Interleaved reports whether all contenders of the situation are measured
// together, in turns, so that they meet the same disturbances.
func (k Kind) Interleaved() bool { return k == Pair || k == Own || k == FrozenPair }

// Frozen reports whether one server is frozen.
func (k Kind) Frozen() bool { return k == FrozenPair || k == FrozenContended }
