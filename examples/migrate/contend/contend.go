// Package contend has several kinds of lock, taken by several callers at once,
// protect one thing, and looks whether two are ever inside.
package contend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
)

// A Side runs work under a lock of its kind.
type Side func(ctx context.Context, work func(context.Context) error) error

// Run lets two callers of every side contend until each has had ten turns. It fails
// if two were inside at once, or if a caller does not get its turns.
func Run(t testing.TB, sides map[string]Side) {
	t.Helper()
	check.Must(t, run(t.Context(), sides, 10, time.Minute))
}

// run has callers contend until each has had so many turns, or patience is over. One
// that is refused asks again.
func run(ctx context.Context, sides map[string]Side, turns int, patience time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var inside atomic.Int32
	ended := make(chan error)
	for name, side := range sides {
		for range 2 {
			go func() {
				had, failed := 0, error(nil)
				for had < turns && ctx.Err() == nil {
					failed = side(ctx, func(context.Context) error {
						if inside.Add(1) > 1 {
							cancel(errors.New("two were inside at the same time"))
						}
						time.Sleep(10 * time.Millisecond) // in which another could come in
						inside.Add(-1)
						if ctx.Err() == nil {
							had++
						}
						return nil
					})
					time.Sleep(rand.N(100 * time.Millisecond)) // some room for clients that poll
				}
				err := context.Cause(ctx)
				if had < turns {
					err = fmt.Errorf("%s had %d of %d turns: %w: %v", name, had, turns, err, failed)
				}
				ended <- err
			}()
		}
	}
	var err error
	for range 2 * len(sides) {
		err = errors.Join(err, <-ended)
	}
	return err
}
