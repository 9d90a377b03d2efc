// Package measure runs cells and says what came of them.
package measure

import (
	"time"

	"github.com/redlatch/redlatch/bench/cell"
	"github.com/redlatch/redlatch/bench/stats"
)

// Result is what was measured in a cell. Of Pair to Leases, that of the cell's
// kind is set.
type Result struct {
	ID string `json:"id"`
	cell.Cell
	// Failed says why the cell has no valid result: it could not be measured,
	// or two contenders had the lock at once.
	Failed string `json:"failed,omitempty"`
	// Errors counts calls that failed, though the cell went on; Error is the
	// first.
	Errors int    `json:"errors,omitempty"`
	Error  string `json:"error,omitempty"`

	Pair      *Pair      `json:"pair,omitempty"`
	Own       *Own       `json:"own,omitempty"`
	Contended *Contended `json:"contended,omitempty"`
	Waiting   *Waiting   `json:"waiting,omitempty"`
	Leases    *Leases    `json:"leases,omitempty"`
}

// Pair is the time of a lock and its release, undisturbed.
type Pair struct {
	Times stats.Summary `json:"times"`
	// Acquire is the acquire alone, where it is measured: a raw round trip.
	Acquire *stats.Summary `json:"acquire,omitempty"`
	Costs
}

// Own is how many pairs a second many goroutines make.
type Own struct {
	// PerSecond is the median of the rounds.
	PerSecond float64   `json:"per_second"`
	Rounds    []float64 `json:"rounds"`
	Costs
}

// Costs are what an operation costs: a pair, or an acquisition.
type Costs struct {
	Commands  float64       `json:"commands_per_op"`
	ClientCPU time.Duration `json:"client_cpu_per_op_ns"`
	ServerCPU time.Duration `json:"server_cpu_per_op_ns"`
}

// Contended is what contenders for one name experience.
type Contended struct {
	Seconds          float64       `json:"seconds"`
	Acquisitions     int           `json:"acquisitions"`
	AcquisitionsRate float64       `json:"acquisitions_per_second"`
	HandOvers        int           `json:"hand_overs"`
	HandOversRate    float64       `json:"hand_overs_per_second"`
	Wait             stats.Summary `json:"wait"`
	HandOver         stats.Summary `json:"hand_over"`
	Held             stats.Summary `json:"held"`
	Jain             float64       `json:"jain"`
	// NeverServed is how many contenders did not get the lock at all.
	NeverServed int `json:"never_served"`
	// Costs are by acquisition; PerHandOver are the commands by hand-over.
	Costs
	PerHandOver float64 `json:"commands_per_hand_over"`
	// RoundTrip is that of a tiny script over raw sockets, meanwhile.
	RoundTrip *stats.Summary `json:"round_trip_meanwhile,omitempty"`
	// Sent are the commands by name, those included that scripts ran.
	Counted  map[string]int64 `json:"counted_commands"`
	Overlaps int              `json:"overlaps"`
}

// Waiting is what waiting for a lock costs that somebody keeps.
type Waiting struct {
	Seconds float64 `json:"seconds"`
	// Commands is how many a waiter and second were sent, the holder's own
	// included.
	Commands  float64          `json:"commands_per_waiter_second"`
	ClientCPU time.Duration    `json:"client_cpu_per_waiter_second_ns"`
	Counted   map[string]int64 `json:"counted_commands"`
}

// Leases is what it costs to keep many locks.
type Leases struct {
	Seconds    float64 `json:"seconds"`
	Goroutines int     `json:"goroutines"`
	// Heap and Stack are bytes for each lease.
	Heap      float64       `json:"heap_bytes_per_lease"`
	Stack     float64       `json:"stack_bytes_per_lease"`
	Commands  float64       `json:"commands_per_second"`
	ClientCPU time.Duration `json:"client_cpu_per_second_ns"`
	ServerCPU time.Duration `json:"server_cpu_per_second_ns"`
}

// RoundTrip is the time of a tiny script over raw sockets, to a number of
// servers of which a majority is waited for.
type RoundTrip struct {
	Nodes int           `json:"nodes"`
	Times stats.Summary `json:"times"`
}
