// Package worker is the contenders' processes: the bench starts itself again,
// as many times as a cell asks for, and each copy follows orders over its
// standard input and output.
//
// A worker reads a Config, connects, and answers that it is ready. It then
// reads an Order, waits for its start, so that all begin together, and at its
// end answers with a Report.
package worker

import (
	"context"
	"encoding/gob"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
)

// Argument makes the program a worker, as the only one on the command line.
const Argument = "worker"

// Config is what a worker needs to get ready.
type Config struct {
	System    string
	Addresses []string
	// Name is the lock's; of many leases the beginning of their names.
	Name string
	// Threads is how many contenders the process is; First the number of the
	// first of them.
	Threads int
	First   int32
	// Held is how long the lock is held each time.
	Held time.Duration
	// Leases is how many locks are taken and kept, instead of contending.
	Leases int
}

// Order is the time in which a worker does its work, on the shared clock.
type Order struct{ Start, End int64 }

// Report is what a worker measured.
type Report struct {
	// CPU is what the process used between the order's start and end.
	CPU time.Duration
	// Errors counts the calls that failed before the end; Error is the first.
	Errors int
	Error  string
	Holds  []stats.Hold
	// Goroutines, Heap and Stack are what the leases that are kept added.
	Goroutines  int
	Heap, Stack int64
}

// readyTimeout is how long getting ready may take.
const readyTimeout = 2 * time.Minute

// Run is the life of a worker.
func Run(in io.Reader, out io.Writer) error {
	orders, answers := gob.NewDecoder(in), gob.NewEncoder(out)
	var c Config
	if err := orders.Decode(&c); err != nil {
		return err
	}
	s, err := system.Find(c.System)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	prepare := prepareContend
	if c.Leases > 0 {
		prepare = prepareKeep
	}
	work, err := prepare(ctx, s, c)
	if err != nil {
		return err
	}
	if err := answers.Encode(true); err != nil {
		return err
	}
	var o Order
	if err := orders.Decode(&o); err != nil {
		return err
	}
	// No more is sent: an end of the input means that the bench is gone.
	go func() {
		io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	clock.Sleep(o.Start)
	before := clock.OfSelf()
	report := work(o)
	report.CPU = clock.OfSelf() - before
	return answers.Encode(report)
}

// work follows an order and returns at its end.
type work func(Order) Report

// failures counts calls that failed.
type failures struct {
	mu    sync.Mutex
	count int
	first string
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == 0 {
		f.first = err.Error()
	}
	f.count++
}

// insistTimeout is how long a lock on a name of one's own may take before it
// is asked for again, insistPause the pause before that.
const (
	insistTimeout = 5 * time.Second
	insistPause   = 200 * time.Millisecond
)

// insist takes a lock that nobody else wants, with as many tries as it takes:
// while a crowd of processes connects at once, servers may be too slow for a
// contender's time limits, and that is not what is measured.
func insist(ctx context.Context, l system.Locker, name string) (system.Held, error) {
	for {
		// The locks of some contenders end with the context they were asked
		// for with, so this one ends only if there is none.
		try, end := context.WithCancel(context.WithoutCancel(ctx))
		timer := time.AfterFunc(insistTimeout, end)
		held, err := l.Lock(try, name)
		if timer.Stop() && err == nil {
			return held, nil
		}
		end()
		if err == nil {
			_ = held.Release()
			err = context.DeadlineExceeded
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(insistPause + rand.N(insistPause)):
		}
	}
}
