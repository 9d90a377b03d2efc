package rueidislock

import (
	"context"
	"time"

	"github.com/redis/rueidis/rueidislock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

func connectAfter(address string) (*redlatch.Client, error) {
	// snippet: connect
	nodes, err := rueidis.Nodes("redis://" + address)
	if err != nil {
		return nil, err
	}
	locks, err := redlatch.New(nodes, &redlatch.Options{
		TTL:    5 * time.Second,
		Prefix: "rueidislock:0:", // for as long as both run; needs KeyMajority 1
	})
	// end snippet
	return locks, err
}

func lockAfter(ctx context.Context, locks *redlatch.Client, work func(context.Context) error) error {
	// snippet: lock
	return locks.Do(ctx, "orders/42", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		return work(ctx)
	})
	// end snippet
}

func both(ctx context.Context, locker rueidislock.Locker, locks *redlatch.Client, work func(context.Context) error) error {
	// snippet: both
	ctx, cancel, err := locker.WithContext(ctx, "orders/42")
	if err != nil {
		return err
	}
	defer cancel()
	return locks.Do(ctx, "orders/42", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		return work(ctx)
	})
	// end snippet
}
