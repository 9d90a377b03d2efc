package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/bench/stats"
	"github.com/redlatch/redlatch/bench/system"
)

// readyTimeout is how long getting ready may take.
const readyTimeout = 2 * time.Minute

// Run is the life of a worker.
func Run(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	var c Config
	if err := readLine(r, &c); err != nil {
		return err
	}
	s, err := system.Find(c.System)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	job, err := prepare(ctx, s, c)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, readyLine); err != nil {
		return err
	}
	var o Order
	if err := readLine(r, &o); err != nil {
		return err
	}
	// Nothing more is sent: an end of the input means that the bench is gone.
	go func() {
		io.Copy(io.Discard, r)
		os.Exit(1)
	}()
	clock.Sleep(o.Start)
	before := cpu()
	report, holds := job(o)
	report.CPU = cpu() - before
	return writeReport(out, report, holds)
}

// job does the work of an order, and returns when it is over.
type job func(Order) (Report, []stats.Hold)

func prepare(ctx context.Context, s *system.System, c Config) (job, error) {
	switch c.Mode {
	case Contend:
		return prepareContend(ctx, s, c)
	case Keep:
		return prepareKeep(ctx, s, c)
	}
	return nil, fmt.Errorf("no mode %q", c.Mode)
}

func readLine(r *bufio.Reader, v any) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// cpu returns the CPU time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

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
// is asked for anew, insistPause how long to wait before that.
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
