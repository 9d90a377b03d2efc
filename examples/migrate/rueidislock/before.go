// Package rueidislock has what docs/migrate.md shows of rueidislock, and what
// takes its place.
package rueidislock

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func connectBefore(address string) (rueidislock.Locker, error) {
	// snippet: connect
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
		KeyMajority:  1,
		KeyValidity:  5 * time.Second,
	})
	// end snippet
	return locker, err
}

func lockBefore(ctx context.Context, locker rueidislock.Locker, work func(context.Context) error) error {
	// snippet: lock
	ctx, cancel, err := locker.WithContext(ctx, "orders/42")
	if err != nil {
		return err
	}
	defer cancel() // releases the lock
	return work(ctx)
	// end snippet
}
