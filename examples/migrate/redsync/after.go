package redsync

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

func connectAfter(a, b, c string) (*redlatch.Client, error) {
	// snippet: connect
	nodes, err := goredis.Nodes("redis://"+a, "redis://"+b, "redis://"+c)
	if err != nil {
		return nil, err
	}
	locks, err := redlatch.New(nodes, nil)
	// end snippet
	return locks, err
}

func lockAfter(ctx context.Context, locks *redlatch.Client, work func(context.Context) error) error {
	// snippet: lock
	opts := redlatch.LockOptions{TTL: 8 * time.Second, Wait: 5 * time.Second}
	return locks.Do(ctx, "orders/42", &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return work(ctx) // with lease.Token() for whatever it writes to
	})
	// end snippet
}

func tryAfter(ctx context.Context, locks *redlatch.Client) (busy bool, err error) {
	// snippet: try
	lease, err := locks.TryLock(ctx, "orders/42", nil)
	if held, ok := errors.AsType[*redlatch.HeldError](err); ok {
		log.Print(held) // who has it, and for how long yet
		return true, nil
	}
	// end snippet
	if err != nil {
		return false, err
	}
	return false, lease.Release(ctx)
}

func elsewhereAfter(ctx context.Context, locks *redlatch.Client, lease *redlatch.Lease) error {
	// snippet: elsewhere
	handle, err := lease.Detach() // to the other process
	if err != nil {
		return err
	}
	// …
	err = locks.Release(ctx, handle) // or Attach, to go on with it
	// end snippet
	return err
}
