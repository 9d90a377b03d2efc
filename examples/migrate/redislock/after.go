package redislock

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	redlatchgoredis "github.com/redlatch/redlatch/store/redis/goredis"
)

func connectAfter(client *goredis.Client) (*redlatch.Client, error) {
	// snippet: connect
	node, err := redlatchgoredis.From(client, &redlatchgoredis.Options{Name: "cache-1"}) // the client that is there already
	if err != nil {
		return nil, err
	}
	locks, err := redlatch.New([]redlatch.Node{node}, &redlatch.Options{Label: "billing"})
	// end snippet
	return locks, err
}

func lockAfter(ctx context.Context, locks *redlatch.Client, work func(context.Context) error) error {
	// snippet: lock
	opts := redlatch.LockOptions{TTL: 8 * time.Second, Wait: 5 * time.Second}
	err := locks.Do(ctx, "orders/42", &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		if err := work(ctx); err != nil {
			return err
		}
		return publish(ctx) // the lock is kept, and ctx ends if it is lost
	})
	if errors.Is(err, redlatch.ErrHeld) {
		return errBusy
	}
	return err
	// end snippet
}
