// Package redsync has what docs/migrate.md shows of redsync, and what takes
// its place.
package redsync

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
)

func connectBefore(a, b, c string) *redsync.Redsync {
	// snippet: connect
	rs := redsync.New(
		redsyncredis.NewPool(goredis.NewClient(&goredis.Options{Addr: a})),
		redsyncredis.NewPool(goredis.NewClient(&goredis.Options{Addr: b})),
		redsyncredis.NewPool(goredis.NewClient(&goredis.Options{Addr: c})),
	)
	// end snippet
	return rs
}

func lockBefore(ctx context.Context, rs *redsync.Redsync, work func(context.Context) error) error {
	// snippet: lock
	mutex := rs.NewMutex("orders/42", redsync.WithExpiry(8*time.Second), redsync.WithTries(32))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(context.WithoutCancel(ctx))
	return work(ctx)
	// end snippet
}

func keepBefore(ctx context.Context, mutex *redsync.Mutex, work func(context.Context) error) error {
	// snippet: keep
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for tick := time.Tick(2 * time.Second); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if ok, _ := mutex.ExtendContext(ctx); !ok && time.Now().After(mutex.Until()) {
				cancel(errors.New("the lock is lost"))
			}
		}
	}()
	return work(ctx)
	// end snippet
}

func tryBefore(ctx context.Context, mutex *redsync.Mutex) (busy bool, err error) {
	// snippet: try
	err = mutex.TryLockContext(ctx)
	if _, ok := errors.AsType[*redsync.ErrTaken](err); ok {
		return true, nil
	}
	// end snippet
	return false, err
}

func elsewhereBefore(ctx context.Context, rs *redsync.Redsync, mutex *redsync.Mutex) error {
	// snippet: elsewhere
	value := mutex.Value() // to the other process
	// …
	_, err := rs.NewMutex("orders/42", redsync.WithValue(value)).UnlockContext(ctx)
	// end snippet
	return err
}
