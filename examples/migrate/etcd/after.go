package etcd

import (
	"context"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/redlatch/redlatch"
)

func lockAfter(ctx context.Context, locks *redlatch.Client, work func(ctx context.Context, token redlatch.Token) error) error {
	// snippet: lock
	opts := redlatch.LockOptions{TTL: 8 * time.Second}
	return locks.Do(ctx, "orders/42", &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return work(ctx, lease.Token())
	})
	// end snippet
}

func leadAfter(ctx context.Context, locks *redlatch.Client, lead func(ctx context.Context, token redlatch.Token) error) error {
	// snippet: lead
	return locks.Do(ctx, "scheduler", nil, func(ctx context.Context, lease *redlatch.Lease) error {
		return lead(ctx, lease.Token())
	})
	// end snippet
}

func both(ctx context.Context, session *concurrency.Session, locks *redlatch.Client, work func(ctx context.Context, revision int64, token redlatch.Token) error) error {
	// snippet: both
	mutex := concurrency.NewMutex(session, "orders/42")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(context.WithoutCancel(ctx))
	opts := redlatch.LockOptions{TTL: 8 * time.Second}
	return locks.Do(ctx, "orders/42", &opts, func(ctx context.Context, lease *redlatch.Lease) error {
		return work(ctx, mutex.Header().Revision, lease.Token()) // for a resource that keeps both
	})
	// end snippet
}
