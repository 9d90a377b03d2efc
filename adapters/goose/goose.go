// Package redlatchgoose has goose lock a database by redlatch, so that of many
// copies of a program that start at once one migrates, and the others wait:
//
//	locker, err := redlatchgoose.New(locks, "migrate/shop", nil)
//	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithLocker(locker))
//	ctx, stop := redlatchgoose.Context(ctx)
//	defer stop()
//	results, err := provider.Up(ctx)
//
// It is for databases for which goose has no locker of its own, and for
// connections through a pooler, which break a lock of a session.
//
// The lock is extended while goose migrates. If it is lost, the context of
// Context ends, and with it the migration; the error is redlatch.ErrLost. If the
// process dies, another one migrates after the TTL.
package redlatchgoose

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
)

// Locker is a lock.Locker of goose, for one provider.
type Locker struct {
	locks *redlatch.Client
	name  string
	opts  redlatch.LockOptions

	mu   sync.Mutex
	held *held // nil while it is not locked
}

// held is a lock that goose holds.
type held struct {
	lease  *redlatch.Lease
	unbind func() bool // has the context of Context outlive the lease
}

var _ lock.Locker = (*Locker)(nil)

// New returns a locker. name is the lock's: the same in all copies of the
// program, and another one for each database. The client must stay open while
// the locker is used.
func New(locks *redlatch.Client, name string, opts *redlatch.LockOptions) (*Locker, error) {
	o := optional.Value(opts)
	switch {
	case locks == nil:
		return nil, &redlatch.ConfigError{Field: "locks", Value: nil, Bound: "a client of redlatch"}
	case name == "":
		return nil, &redlatch.ConfigError{Field: "name", Value: name, Bound: "the name of the lock, one for each database"}
	case o.Shared || o.Slots != 0:
		return nil, &redlatch.ConfigError{Field: "Shared", Value: fmt.Sprintf("%v with %d Slots", o.Shared, o.Slots), Bound: "left out, and Slots too: one migrates at a time"}
	}
	return &Locker{locks: locks, name: name, opts: o}, nil
}

type lostKey struct{}

// Context returns a context for one call of goose that also ends when the lock
// is lost. goose does not end a migration by itself: its lockers have no way to
// ask for that. Call stop after the call of goose.
func Context(ctx context.Context) (call context.Context, stop context.CancelFunc) {
	call, cancel := context.WithCancelCause(ctx)
	return context.WithValue(call, lostKey{}, cancel), func() { cancel(nil) }
}

// Lock waits for the lock, until ctx ends.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	lease, err := l.locks.Lock(ctx, l.name, &l.opts)
	if err != nil {
		return err
	}
	h := &held{lease, func() bool { return true }}
	if cancel, ok := ctx.Value(lostKey{}).(context.CancelCauseFunc); ok {
		h.unbind = context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = h
	return nil
}

// Unlock releases the lock. If the lock was lost while goose migrated, it returns
// redlatch.ErrLost: another process may have migrated at the same time.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	l.mu.Lock()
	h := l.held
	l.held = nil
	l.mu.Unlock()
	if h == nil {
		return fmt.Errorf("redlatch: unlock of %q, which is not locked", l.name)
	}
	h.unbind()
	return h.lease.Release(ctx)
}
