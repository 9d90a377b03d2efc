// Package redislock has what docs/migrate.md shows of bsm/redislock, and what
// takes its place.
package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

func lockBefore(ctx context.Context, client *goredis.Client, work func(context.Context) error) error {
	// snippet: lock
	lock, err := redislock.Obtain(ctx, client, "orders/42", 8*time.Second, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 50),
		Metadata:      "billing",
	})
	if errors.Is(err, redislock.ErrNotObtained) {
		return errBusy
	} else if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	if err := work(ctx); err != nil {
		return err
	}
	if err := lock.Refresh(ctx, 8*time.Second, nil); err != nil { // before each step that takes long
		return err
	}
	return publish(ctx)
	// end snippet
}

var errBusy = errors.New("somebody else is at it")

func publish(context.Context) error { return nil }
