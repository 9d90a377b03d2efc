// Package redlatchcertmagic has certmagic lock by redlatch. certmagic keeps
// certificates in a storage that the copies of a program share, and locks a name
// there while it obtains or renews the certificate. Wrap returns a storage that
// keeps certificates where they are, and locks on the nodes of a redlatch
// client:
//
//	import (
//		"github.com/caddyserver/certmagic"
//		"github.com/redlatch/redlatch"
//		redlatchcertmagic "github.com/redlatch/redlatch/adapters/certmagic"
//	)
//
//	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", nil)
//	defer locks.Close()
//
//	files := &certmagic.FileStorage{Path: "/shared/certificates"}
//	storage, err := redlatchcertmagic.Wrap(files, locks, nil)
//	certmagic.Default.Storage = storage
//
// A lock is extended while its holder lives. If the process dies, the next one
// goes on after the TTL. If a lock is lost, certmagic acquires it again before
// its next attempt (RenewLockLease), and Unlock returns the loss.
package redlatchcertmagic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
)

const (
	// defaultPrefix keeps the locks apart from others on the same nodes.
	defaultPrefix = "certmagic/"
	// defaultMaxHold is above the thirty days for which certmagic tries again
	// and again to obtain a certificate, and holds the lock.
	defaultMaxHold = 31 * 24 * time.Hour
)

// Options are the settings of a Storage. The zero value works.
type Options struct {
	// Prefix is put before the names of certmagic's locks. All copies of a
	// program must use the same. Defaults to certmagic/.
	Prefix string

	// TTL is how long a lock outlives the process that holds it. Defaults to the
	// client's.
	TTL time.Duration

	// MaxHold is the longest time for which a lock is extended. Defaults to 31
	// days: certmagic holds a lock while it tries again after failures, for up
	// to 30 days.
	MaxHold time.Duration
}

// Storage is a certmagic.Storage whose locks are redlatch's. It is safe for use
// by many goroutines.
type Storage struct {
	certmagic.Storage
	locks *redlatch.Client
	opts  Options

	mu   sync.Mutex
	held map[string][]*holding // by certmagic's name, in the order in which they were acquired
}

// holding is a lock between Lock and Unlock.
type holding struct {
	lease *redlatch.Lease
	lost  error // that an earlier lease was lost
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// Wrap returns a storage that stores in storage and locks with locks. The client
// must stay open while the storage is used.
func Wrap(storage certmagic.Storage, locks *redlatch.Client, opts *Options) (*Storage, error) {
	o := optional.Value(opts)
	if storage == nil {
		return nil, &redlatch.ConfigError{Field: "storage", Value: nil, Bound: "a storage of certmagic"}
	}
	if locks == nil {
		return nil, &redlatch.ConfigError{Field: "locks", Value: nil, Bound: "a client of redlatch"}
	}
	if o.TTL < 0 || o.MaxHold < 0 {
		return nil, &redlatch.ConfigError{Field: "TTL and MaxHold", Value: fmt.Sprint(o.TTL, " and ", o.MaxHold), Bound: "0 or above"}
	}
	o.Prefix, o.MaxHold = cmp.Or(o.Prefix, defaultPrefix), cmp.Or(o.MaxHold, defaultMaxHold)
	return &Storage{Storage: storage, locks: locks, opts: o, held: map[string][]*holding{}}, nil
}

// String describes the storage, for logs.
func (s *Storage) String() string { return fmt.Sprintf("%v, locked by redlatch", s.Storage) }

// Lock waits for the lock of a name until it has it or ctx ends. Callers are
// served in the order in which they came.
func (s *Storage) Lock(ctx context.Context, name string) error {
	return s.hold(ctx, name, s.locks.Lock)
}

// TryLock asks for the lock of a name once. It returns false, and no error, if
// the lock is held.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	err := s.hold(ctx, name, s.locks.TryLock)
	if errors.Is(err, redlatch.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// locker is Lock or TryLock of a client.
type locker func(context.Context, string, *redlatch.LockOptions) (*redlatch.Lease, error)

// hold keeps the lease of a name for Unlock.
func (s *Storage) hold(ctx context.Context, name string, lock locker) error {
	lease, err := s.acquire(ctx, name, lock)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], &holding{lease: lease})
	return nil
}

func (s *Storage) acquire(ctx context.Context, name string, lock locker) (*redlatch.Lease, error) {
	return lock(ctx, s.opts.Prefix+name, &redlatch.LockOptions{TTL: s.opts.TTL, MaxHold: s.opts.MaxHold})
}

// Unlock releases the lock of a name. If the lock was lost while it was held, it
// returns the loss, which is redlatch.ErrLost: another process may have worked
// at the same time.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	h := s.oldest(name)
	if h == nil {
		s.mu.Unlock()
		return notHeld("unlock", name)
	}
	if s.held[name] = s.held[name][1:]; len(s.held[name]) == 0 {
		delete(s.held, name)
	}
	lease, lost := h.lease, h.lost
	s.mu.Unlock()
	return errors.Join(lost, lease.Release(ctx))
}

// oldest returns the first holding of a name; nil if there is none. There can be
// two: one was lost, and then another goroutine acquired the lock. certmagic does
// not say which of them calls, so it is taken for the one that lost: a lock that
// is valid must not be released under its holder. The mutex is held.
func (s *Storage) oldest(name string) *holding {
	if all := s.held[name]; len(all) > 0 {
		return all[0]
	}
	return nil
}

func notHeld(what, name string) error {
	return fmt.Errorf("redlatch: %s of %q, which this storage has not locked", what, name)
}

// RenewLockLease confirms on the nodes that the lock of a name is still held.
// certmagic calls it before each of its attempts. The lock is extended in the
// background for as long as the process lives, so the duration does not matter.
//
// If the lock is lost, it is acquired again, so that the attempt begins under a
// lock; Unlock returns the loss. If another process holds it by now, the error is
// redlatch.ErrLost and redlatch.ErrHeld, and certmagic tries again later.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	h := s.oldest(name)
	if h == nil {
		s.mu.Unlock()
		return notHeld("renewal", name)
	}
	lease := h.lease
	s.mu.Unlock()
	err := lease.Extend(ctx)
	ended := lease.Err()
	switch {
	case err == nil:
		return nil
	case ended != nil:
		return s.renew(ctx, name, h, ended)
	case ctx.Err() != nil, errors.Is(err, redlatch.ErrMaxHold):
		return err
	}
	return nil // a server is slow; the lease is valid, and is extended again soon
}

// renew acquires a lock again that was lost.
func (s *Storage) renew(ctx context.Context, name string, h *holding, lost error) error {
	lease, err := s.acquire(ctx, name, s.locks.TryLock)
	if err != nil {
		return errors.Join(lost, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oldest(name) != h {
		go lease.Release(context.WithoutCancel(ctx)) // it was unlocked meanwhile
		return lost
	}
	h.lease, h.lost = lease, errors.Join(h.lost, lost)
	return nil
}
