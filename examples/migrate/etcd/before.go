// Package etcd has what docs/migrate.md shows of etcd's package concurrency,
// and what takes its place.
package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func lockBefore(ctx context.Context, client *clientv3.Client, work func(ctx context.Context, token int64) error) error {
	// snippet: lock
	session, err := concurrency.NewSession(client, concurrency.WithTTL(8))
	if err != nil {
		return err
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "orders/42")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer mutex.Unlock(context.WithoutCancel(ctx))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(session.Ctx(), cancel) // the lock is lost with the session
	defer stop()
	return work(ctx, mutex.Header().Revision)
	// end snippet
}

func leadBefore(ctx context.Context, session *concurrency.Session, lead func(ctx context.Context, token int64) error) error {
	// snippet: lead
	election := concurrency.NewElection(session, "scheduler")
	if err := election.Campaign(ctx, "host-1"); err != nil {
		return err
	}
	defer election.Resign(context.WithoutCancel(ctx))
	return lead(ctx, election.Rev())
	// end snippet
}
