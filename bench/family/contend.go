package family

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlatch/redlatch/bench/clock"
)

// Argument makes the program a contender, as the only one on the command line.
const Argument = "contend"

const (
	// readyTimeout is how long getting ready may take.
	readyTimeout = time.Minute
	// afterFailure is how long a contender pauses after a call that failed, and
	// again as long at random.
	afterFailure = 100 * time.Millisecond
	// releaseTimeout bounds a release.
	releaseTimeout = time.Second
)

// locker asks for a lock of several holders. It waits until ctx ends.
type locker func(ctx context.Context, name string, write bool) (release func(context.Context) error, err error)

// Contend is the life of a contender's process.
func Contend(in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	buffer := bufio.NewWriter(out)
	answers := json.NewEncoder(buffer)
	var c Config
	if err := orders.Decode(&c); err != nil {
		return err
	}
	open, ok := lockers[c.Peer]
	if !ok {
		return fmt.Errorf("no contender %q in Go", c.Peer)
	}
	lock, err := open(c)
	if err != nil {
		return err
	}
	if err := first(lock, c); err != nil {
		return fmt.Errorf("first lock of contender %d: %w", c.First, err)
	}
	if err := answers.Encode(Answer{Ready: true}); err != nil {
		return err
	}
	for {
		if err := buffer.Flush(); err != nil {
			return err
		}
		var o Order
		if err := orders.Decode(&o); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		clock.Sleep(o.Start)
		history, failed := follow(lock, c, o)
		for _, r := range history {
			err = answers.Encode(Answer{
				Contender: r.Contender, Write: r.Write, Got: r.Got,
				Called: r.Called, Acquired: r.Acquired, Released: r.Released,
			})
			if err != nil {
				return err
			}
		}
		if err := answers.Encode(failed); err != nil {
			return err
		}
	}
}

// first takes a lock that nobody else wants, as a writer and as a reader, so
// that no connection is made and no script is loaded later. It tries until it
// succeeds: others connect at the same time, and what is slow then is not
// measured.
func first(lock locker, c Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for _, write := range []bool{true, false} {
		for {
			release, err := lock(ctx, fmt.Sprintf("warm/%d", c.First), write)
			if err == nil {
				err = release(ctx)
			}
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return err
			}
			time.Sleep(afterFailure + rand.N(afterFailure))
		}
	}
	return nil
}

// follow follows an order with all contenders of the process.
func follow(lock locker, c Config, o Order) (History, Answer) {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	defer time.AfterFunc(clock.Until(o.End), end).Stop()
	var mu sync.Mutex
	var history History
	done := Answer{Done: true}
	var all sync.WaitGroup
	for i := range c.Contenders {
		all.Go(func() {
			mine, errs := contend(ctx, lock, c, c.First+int32(i), o)
			mu.Lock()
			defer mu.Unlock()
			history = append(history, mine...)
			if done.Errors += len(errs); done.Error == "" && len(errs) > 0 {
				done.Error = errs[0].Error()
			}
		})
	}
	all.Wait()
	return history, done
}

func contend(ctx context.Context, lock locker, c Config, number int32, o Order) (History, []error) {
	history := make(History, 0, 4096)
	var errs []error
	called := clock.Now()
	for n := 0; clock.Now() < o.End; {
		r := Request{Write: c.writes(number, n)}
		r.Contender, r.Called = number, called
		release, err := lock(ctx, o.Name, r.Write)
		r.Acquired = clock.Now()
		if err != nil {
			if ctx.Err() == nil {
				// It goes on waiting: the time since it first asked counts.
				errs = append(errs, fmt.Errorf("lock: %w", err))
				time.Sleep(afterFailure + rand.N(afterFailure))
				continue
			}
			r.Acquired = o.End
			return append(history, r), errs
		}
		time.Sleep(time.Duration(c.HeldMS) * time.Millisecond)
		r.Got, r.Released = true, clock.Now()
		history = append(history, r)
		if err := giveBack(release); err != nil && ctx.Err() == nil {
			errs = append(errs, fmt.Errorf("release: %w", err))
		}
		n++
		called = clock.Now()
	}
	return history, errs
}

func giveBack(release func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	return release(ctx)
}
