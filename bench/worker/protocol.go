// Package worker is the contenders' processes: the bench starts itself again,
// as many times as a cell asks for, and each copy does what it is told over
// its standard input.
//
// A worker reads a Config, connects, and writes a line when it is ready. It
// then reads an Order, waits for its beginning, so that all begin together,
// and when its end has come writes a Report, followed by its holds.
package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/redlatch/redlatch/bench/stats"
)

// Argument makes the program a worker, as the only one on the command line.
const Argument = "worker"

// Mode is what a worker does.
type Mode string

// The modes.
const (
	// Contend locks, holds and releases one name, again and again.
	Contend Mode = "contend"
	// Keep takes many locks and keeps them.
	Keep Mode = "keep"
)

// Config is what a worker needs to know to get ready.
type Config struct {
	Mode      Mode
	System    string
	Addresses []string
	// Name is the lock's; with Keep the beginning of the locks' names.
	Name string
	// Threads is how many contenders the process is; First the number of the
	// first of them.
	Threads int
	First   int32
	// Held is how long the lock is held each time.
	Held time.Duration
	// Leases is how many locks are taken and kept.
	Leases int
}

// Order is the time in which a worker does its work, on the shared clock.
type Order struct{ Start, End int64 }

// Report is what a worker says of itself.
type Report struct {
	// CPU is what the process used between the order's start and end.
	CPU time.Duration
	// Errors counts the calls that failed, though nobody ended them; Error is
	// the first.
	Errors int
	Error  string
	// Holds is how many follow.
	Holds int

	// Goroutines, Heap and Stack are what was added by the leases that are
	// kept.
	Goroutines  int
	Heap, Stack int64
}

const readyLine = "ready\n"

// writeReport writes a report and its holds.
func writeReport(w io.Writer, r Report, holds []stats.Hold) error {
	r.Holds = len(holds)
	b := bufio.NewWriter(w)
	if err := json.NewEncoder(b).Encode(r); err != nil {
		return err
	}
	for _, h := range holds {
		if err := binary.Write(b, binary.LittleEndian, h); err != nil {
			return err
		}
	}
	return b.Flush()
}

// readReport reads what writeReport wrote.
func readReport(b *bufio.Reader) (Report, []stats.Hold, error) {
	var r Report
	line, err := b.ReadBytes('\n')
	if err != nil {
		return r, nil, fmt.Errorf("worker ended without a report: %w", err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, nil, fmt.Errorf("worker's report: %w", err)
	}
	holds := make([]stats.Hold, r.Holds)
	err = binary.Read(b, binary.LittleEndian, holds)
	return r, holds, err
}
