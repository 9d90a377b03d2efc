// Package measure puts contenders into situations and returns what was measured.
package measure

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/server"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// Work is what contenders do in a situation.
type Work int

const (
	// Inside is goroutines of one process that lock and release.
	Inside Work = iota
	// Processes is processes that want the same name, a contender each.
	Processes
	// Keep is this process, which takes many locks, keeps and releases them.
	Keep
	// Runs is redlatch run on one name, by as many processes at once.
	Runs
)

// Situation is what contenders are compared in.
type Situation struct {
	// ID begins the ids of its cells.
	ID   string
	Work Work
	// Count is how many goroutines, contenders or locks there are; 0 for one.
	Count int
	// OneName says that all goroutines want the same name.
	OneName bool

	// Held is how long processes hold the lock each time.
	Held time.Duration
	// With Turns processes take turns in rounds, each contender on servers of its
	// own. Otherwise one contender follows the other.
	Turns bool
	// Crowd has each contender a connection of its own, or what it has in place of
	// one; some of them share a process. A round has a warm-up of its own.
	Crowd bool
	// Deadline is how long each try may take; 0 for patient contenders.
	Deadline time.Duration
	// Single measures each round once more with one processor for Go's code.
	Single bool

	Network server.Network

	// Rounds of For are measured; 0 for one. Another one before them does not count.
	Rounds int
	For    time.Duration
}

// together reports whether the contenders of a batch are measured in turns, so
// that they meet the same disturbances.
func (s Situation) together() bool { return s.Work == Inside || s.Turns }

// own reports whether each contender has a name of its own.
func (s Situation) own() bool { return s.Work == Inside && !s.OneName }

// A Cell is one contender in one situation, on a number of servers.
type Cell struct {
	Situation
	Nodes int
	*contender.Contender
}

// CellID returns the cell's id, such as contended/16/1ms/5/redlatch.
func (c Cell) CellID() string { return fmt.Sprintf("%s/%d/%s", c.ID, c.Nodes, c.Key) }

// Batches groups the cells that are measured together. etcd, whose number of
// servers is its own, joins those on Redis. Others of two kinds are not compared.
func Batches(cells []Cell) [][]Cell {
	var batches [][]Cell
	for _, c := range cells {
		if n := len(batches); n > 0 && c.together() {
			first := batches[n-1][0]
			if first.ID == c.ID && (first.Server == c.Server && (c.Turns || first.Nodes == c.Nodes) ||
				first.Server == server.RedisKind && c.Server == server.EtcdKind) {
				batches[n-1] = append(batches[n-1], c)
				continue
			}
		}
		batches = append(batches, []Cell{c})
	}
	return batches
}

// Result is what was measured in a cell, as far as its work has it.
type Result struct {
	Cell
	// Failed says why the cell has no valid result: it could not be measured,
	// or two contenders had the lock at once.
	Failed string
	// Errors counts calls that failed, though the cell went on; Error is the
	// first.
	Errors int
	Error  string
	// Unreleased counts the releases that failed, Lost the leases that were lost
	// before it.
	Unreleased, Lost int
	// Base is the native lock of the same servers, in the same situation.
	Base *Result

	// Rates are the pairs or acquisitions a second of each round, HandOverRates
	// the hand-overs.
	Rates, HandOverRates []float64
	// Alone are the rates with one processor.
	Alone []float64
	// Pair is the time of a lock and its release.
	Pair, Wait, HandOver stats.Summary
	Jain                 float64
	// Never is how many contenders did not get the lock at all.
	Never int
	// Overtaken is how many acquired before one who had asked before them, at most.
	Overtaken int

	// Of each pair or acquisition, or of each second that locks are kept.
	Commands             float64
	ClientCPU, ServerCPU time.Duration
	// PerHandOver is the commands of each hand-over.
	PerHandOver float64
	// Writes is what a cluster agreed on for each pair or acquisition.
	Writes float64

	Kept Kept

	// Of runs: how many exited with 69, how many with another status than 0, and how
	// long it took until all were done.
	NoQuorum, Other int
	Took            time.Duration
}

// Kept is what it costs to keep many locks, on each server.
type Kept struct {
	// Acquire, Extend and Release are the scripts, by the servers' own clocks.
	Acquire, Extend, Release time.Duration
	// Lock and After are the bytes of a lock while it is kept and after that.
	Lock, After float64
	// Client is the client's bytes for a lock, stacks included.
	Client float64
}

// Rate returns pairs or acquisitions a second, the median of the rounds.
func (r *Result) Rate() float64 { return stats.Median(r.Rates) }

// HandOverRate returns hand-overs a second, the median of the rounds.
func (r *Result) HandOverRate() float64 { return stats.Median(r.HandOverRates) }
