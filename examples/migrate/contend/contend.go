// Package contend has several kinds of lock, taken by several callers at once,
// protect one thing, and looks whether two are ever inside.
package contend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

var errCrowded = errors.New("two were inside at the same time")

// A Side runs work under a lock of its kind.
type Side func(ctx context.Context, work func(context.Context) error) error

// Run has callers of every side contend until each side has had so many turns,
// or patience is over. It returns an error if two were inside at once, if a
// side did not get its turns, or if a side failed; holders that were refused
// in the meantime are no failure as long as the turns come.
func Run(ctx context.Context, sides map[string]Side, turns int, patience time.Duration) error {
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all had %d turns within %v", turns, patience))
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		inside  atomic.Int32
		short   sync.WaitGroup // sides that have not had their turns
		callers sync.WaitGroup
		mu      sync.Mutex
		had     = map[string]int{}
		lastErr = map[string]error{}
	)
	work := func(name string) func(context.Context) error {
		return func(context.Context) error {
			if inside.Add(1) > 1 {
				cancel(errCrowded)
			}
			time.Sleep(10 * time.Millisecond) // in which another could come in
			inside.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			if had[name]++; had[name] == turns {
				short.Done()
			}
			return nil
		}
	}
	for name, side := range sides {
		short.Add(1)
		for range 2 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if err := side(ctx, work(name)); err != nil && ctx.Err() == nil {
						mu.Lock()
						lastErr[name] = err
						mu.Unlock()
					}
					// Some room for clients that poll.
					time.Sleep(rand.N(100 * time.Millisecond))
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { short.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		mu.Lock()
		err = fmt.Errorf("%w: had %v, errors %v", context.Cause(ctx), had, lastErr)
		mu.Unlock()
	}
	cancel(nil)
	callers.Wait()
	return err
}
