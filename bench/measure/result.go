// Package measure runs cells and returns what was measured.
package measure

import (
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/stats"
)

// Result is what was measured in a cell. Of Pair to Leases, that of the cell's
// kind is set, unless the cell failed.
type Result struct {
	cell.Cell
	// Failed says why the cell has no valid result: it could not be measured,
	// or two contenders had the lock at once.
	Failed string
	// Errors counts calls that failed, though the cell went on; Error is the
	// first.
	Errors int
	Error  string

	Pair      Pair
	Own       Own
	Contended Contended
	Waiting   Waiting
	Leases    Leases
}

// Costs are what an operation costs: a pair, or an acquisition.
type Costs struct {
	Commands             float64
	ClientCPU, ServerCPU time.Duration
}

// Pair is the time of a lock and its release, undisturbed.
type Pair struct {
	Times stats.Summary
	// Acquire is the acquire alone, of the floor that sends redlatch's scripts.
	Acquire stats.Summary
	Costs
}

// Own is how many pairs a second many goroutines make.
type Own struct {
	PerSecond float64 // the median of the rounds
	Rounds    []float64
	Costs
}

// Contended is what contenders for one name experience.
type Contended struct {
	Acquisitions, HandOvers         int
	AcquisitionsRate, HandOversRate float64 // a second
	Wait, HandOver, Held            stats.Summary
	Jain                            float64
	// NeverServed is how many contenders did not get the lock at all.
	NeverServed int
	// Costs are by acquisition; PerHandOver are the commands by hand-over.
	Costs
	PerHandOver float64
	// RoundTrip is that of a tiny script over raw sockets, meanwhile.
	RoundTrip stats.Summary
}

// Waiting is what waiting for a lock costs that is held all the time, by waiter
// and second. The holder's own commands are included.
type Waiting struct {
	Commands  float64
	ClientCPU time.Duration
}

// Leases is what it costs to keep many locks.
type Leases struct {
	Goroutines int
	// Heap and Stack are bytes for each lease.
	Heap, Stack float64
	// Costs are by second.
	Costs
}

// RoundTrip is the time of a tiny script over raw sockets, to a number of
// servers of which a majority is waited for.
type RoundTrip struct {
	Nodes int
	Times stats.Summary
}

// per divides a time by a number of operations.
func per(d time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	return d / time.Duration(n)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
