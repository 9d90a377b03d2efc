// Package worker is the contenders' processes. The bench starts itself again, as
// many times as a cell asks for.
//
// A process follows orders over its standard input and output, a line of JSON
// each: it reads a Config, connects, and answers that it is ready. It then reads
// Orders. It asks for the lock from an order's start to its end, holds it,
// releases it and asks again. At the end it answers with its requests.
package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/contender"
	"github.com/redlatch/redlatch/test/bench/stats"
)

// Argument makes the program a worker, as the only one on the command line.
const Argument = "worker"

// Config is what a process needs to get ready.
type Config struct {
	Contender string   `json:"peer"`
	Addresses []string `json:"addresses"`
	// Contenders is how many contenders the process is; First the number of
	// the first of them.
	Contenders int   `json:"contenders"`
	First      int32 `json:"first"`
	// Held is how long the lock is held each time.
	Held time.Duration `json:"held"`
	// Own gives each contender a name of its own.
	Own bool `json:"own,omitempty"`
	// Apart opens the contender anew for each.
	Apart bool `json:"apart,omitempty"`
	// Deadline is how long each try may take; 0 for no limit.
	Deadline time.Duration `json:"deadline,omitempty"`
	// Procs is how many processors Go's code has; 0 for all.
	Procs int `json:"procs,omitempty"`
}

// Order is the time in which contenders want the lock of a name, on the clock
// that all processes share.
type Order struct {
	Name  string `json:"name"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
}

// Answer is a line that a process writes: that it is ready, or what it did.
type Answer struct {
	Requests []stats.Request `json:"requests,omitempty"`
	// Errors counts the calls that failed before the end; Error is the first. A try
	// that ends with its deadline has not failed.
	Errors int    `json:"errors,omitempty"`
	Error  string `json:"error,omitempty"`
	// Unreleased counts the releases among them, but for those of leases that had
	// been lost, which Lost counts.
	Unreleased int `json:"unreleased,omitempty"`
	Lost       int `json:"lost,omitempty"`
}

// add adds what others did.
func (a *Answer) add(b Answer) {
	a.Requests = append(a.Requests, b.Requests...)
	a.Errors, a.Unreleased, a.Lost = a.Errors+b.Errors, a.Unreleased+b.Unreleased, a.Lost+b.Lost
	a.Error = cmp.Or(a.Error, b.Error)
}

// Run is the life of a process.
func Run(in io.Reader, out io.Writer) error {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	var c Config
	if err := orders.Decode(&c); err != nil {
		return err
	}
	if c.Procs > 0 {
		runtime.GOMAXPROCS(c.Procs)
	}
	crew, err := ready(c)
	if err != nil {
		return fmt.Errorf("first lock of a contender: %w", err)
	}
	for answer := (Answer{}); ; {
		if err := answers.Encode(answer); err != nil {
			return err
		}
		var o Order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		answer = crew.follow(o)
	}
}

// readyTimeout is how long getting ready may take.
const readyTimeout = 2 * time.Minute

// crew is the contenders of a process.
type crew struct {
	Config
	shared    *contender.Locker
	lockers   []*contender.Locker
	histories [][]stats.Request // kept from order to order, so that they do not grow
}

// ready connects, and locks a name of its own once for every contender, so that no
// connection is made and no script is loaded later.
func ready(c Config) (*crew, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	found, err := contender.Find(c.Contender)
	if err != nil {
		return nil, err
	}
	w := &crew{Config: c, lockers: make([]*contender.Locker, c.Contenders), histories: make([][]stats.Request, c.Contenders)}
	open := func() (*contender.Locker, error) { return found[0].Open(ctx, c.Addresses) }
	if w.shared, err = open(); err != nil {
		return nil, err
	}
	var g errgroup.Group
	for i := range w.lockers {
		g.Go(func() (err error) {
			w.lockers[i], w.histories[i] = w.shared, make([]stats.Request, 0, 4096)
			if c.Apart && i > 0 {
				w.lockers[i], err = open()
			} else if w.shared.Fork != nil && !c.Own && !c.Apart {
				w.lockers[i], err = w.shared.Fork()
			}
			if err != nil {
				return err
			}
			return Insist(ctx, w.lockers[i], fmt.Sprintf("warm/%d", c.First+int32(i)))
		})
	}
	return w, g.Wait()
}

const (
	// afterFailure is how long a contender pauses after a call that failed, and
	// again as long at random: one that asks again at once would keep servers
	// that are overloaded from recovering.
	afterFailure = 100 * time.Millisecond
	// insistFor is how long a lock on a name of one's own may take before it is
	// asked for again.
	insistFor = 5 * time.Second
)

// Insist takes and releases a lock that nobody else wants, with as many tries as
// it takes: while a crowd of processes connects at once, servers may be too slow
// for a contender's time limits, and that is not what is measured.
func Insist(ctx context.Context, l *contender.Locker, name string) error {
	for {
		try, end := context.WithTimeout(ctx, insistFor)
		release, err := l.Lock(try, name)
		if err == nil {
			err = release.Do()
		}
		end()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(afterFailure + rand.N(afterFailure))
	}
}

// follow follows an order with all contenders of the process.
func (w *crew) follow(o Order) (done Answer) {
	runtime.GC()
	clock.Sleep(o.Start)
	// Not a deadline: some contenders shorten their locks to it.
	ctx, end := context.WithCancel(context.Background())
	defer end()
	if !w.Own { // on a name of one's own the last lock is not waited for
		defer time.AfterFunc(clock.Until(o.End), end).Stop()
	}
	answers := make([]Answer, len(w.lockers))
	var all sync.WaitGroup
	for i := range w.lockers {
		all.Go(func() { answers[i] = w.contend(ctx, i, o) })
	}
	all.Wait()
	for _, a := range answers {
		done.add(a)
	}
	return done
}

func (w *crew) contend(ctx context.Context, i int, o Order) (did Answer) {
	number, history := w.First+int32(i), w.histories[i][:0]
	if w.Own {
		o.Name = fmt.Sprintf("%s/%d", o.Name, number)
	}
	called := clock.Now()
	for called < o.End && clock.Now() < o.End {
		r, err := w.hold(ctx, w.lockers[i], o.Name, stats.Request{Contender: number, Called: called})
		if err != nil && ctx.Err() == nil && (r.Got || w.Deadline == 0 || !strings.Contains(err.Error(), "deadline exceeded")) { // by whomever
			did.add(failure(r.Got, err))
		}
		if !r.Got && ctx.Err() != nil {
			break
		}
		if !r.Got && w.Deadline > 0 { // it asks again at once, as one who was served
			r.Acquired = clock.Now()
			called, history = r.Acquired, append(history, r)
			continue
		}
		if !r.Got {
			// It goes on waiting: the time since it first asked counts.
			time.Sleep(afterFailure + rand.N(afterFailure))
			continue
		}
		called = clock.Now()
		r.Freed = called
		history = append(history, r)
	}
	if called < o.End {
		history = append(history, stats.Request{Contender: number, Called: called, Acquired: o.End})
	}
	w.histories[i], did.Requests = history, history
	return did
}

// failure is a call that failed: a release, or a lock.
func failure(release bool, err error) Answer {
	switch {
	case release && errors.Is(err, redlatch.ErrLost):
		return Answer{Errors: 1, Error: err.Error(), Lost: 1}
	case release:
		return Answer{Errors: 1, Error: err.Error(), Unreleased: 1}
	}
	return Answer{Errors: 1, Error: err.Error()}
}

// hold has the lock once, and notes when.
func (w *crew) hold(ctx context.Context, l *contender.Locker, name string, r stats.Request) (stats.Request, error) {
	if w.Deadline > 0 {
		limited, cancel := context.WithTimeout(ctx, w.Deadline)
		defer cancel() // some locks end with it
		ctx = limited
	}
	release, err := l.Lock(ctx, name)
	if err != nil {
		return r, fmt.Errorf("lock: %w", cmp.Or(ctx.Err(), err))
	}
	r.Got, r.Acquired = true, clock.Now()
	time.Sleep(w.Held)
	r.Released = clock.Now()
	if err := release(context.Background()); err != nil {
		return r, fmt.Errorf("release: %w", err)
	}
	return r, nil
}
