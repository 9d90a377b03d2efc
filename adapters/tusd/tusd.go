// Package redlatchtusd has tusd lock uploads by redlatch, so that several tusd
// servers can serve the same uploads. tusd locks an upload while a request reads
// or writes it:
//
//	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", nil)
//	defer locks.Close()
//	locker, err := redlatchtusd.New(locks, nil)
//
//	composer := handler.NewStoreComposer()
//	filestore.New("/shared/uploads").UseIn(composer)
//	locker.UseIn(composer)
//	uploads, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
//
// When another request waits for an upload, on this server or another one, the
// request that holds it is asked to stop. So a client whose connection broke can
// go on at once, although its last request still hangs on the other server. A
// lock is extended while its request runs. If the server dies, the upload is free
// after the TTL. If a lock is lost, its request is stopped too.
package redlatchtusd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
)

// defaultPrefix keeps the locks apart from others on the same nodes.
const defaultPrefix = "tusd/"

// shortRequest is how long a request takes that is over soon. Only for longer
// ones the nodes are asked whether somebody waits.
const shortRequest = 100 * time.Millisecond

// Options are the settings of a Locker. The zero value works.
type Options struct {
	// Prefix is put before the id of an upload. All servers must use the same.
	// Defaults to tusd/.
	Prefix string

	// TTL is how long a lock outlives the server that holds it. It should be
	// below tusd's AcquireLockTimeout, 20 s by default, or requests fail while
	// they wait for the lock of a server that died. Defaults to the client's.
	TTL time.Duration
}

// Locker is a handler.Locker. It is safe for use by many goroutines.
type Locker struct {
	locks *redlatch.Client
	opts  Options
}

var _ handler.Locker = (*Locker)(nil)

// New returns a locker. The client must stay open while it is used.
func New(locks *redlatch.Client, opts *Options) (*Locker, error) {
	o := optional.Value(opts)
	if locks == nil {
		return nil, &redlatch.ConfigError{Field: "locks", Value: nil, Bound: "a client of redlatch"}
	}
	if o.TTL < 0 {
		return nil, &redlatch.ConfigError{Field: "TTL", Value: o.TTL, Bound: "0 or above"}
	}
	o.Prefix = cmp.Or(o.Prefix, defaultPrefix)
	return &Locker{locks, o}, nil
}

// UseIn adds the locker to a composer.
func (l *Locker) UseIn(composer *handler.StoreComposer) { composer.UseLocker(l) }

// NewLock returns the lock of an upload. It is not locked yet.
func (l *Locker) NewLock(id string) (handler.Lock, error) {
	if id == "" {
		return nil, &redlatch.ConfigError{Field: "id", Value: id, Bound: "the id of an upload"}
	}
	return &lock{locker: l, id: id}, nil
}

// lock is the lock of one request.
type lock struct {
	locker *Locker
	id     string

	mu    sync.Mutex
	lease *redlatch.Lease // nil while it is not locked
}

// Lock waits for the lock until ctx ends, and then returns
// handler.ErrLockTimeout. Requests are served in the order in which they came.
// requestUnlock is called once, as soon as another request waits for the lock, on
// any server, or the lock is lost.
func (l *lock) Lock(ctx context.Context, requestUnlock func()) error {
	lease, err := l.locker.locks.Lock(ctx, l.locker.opts.Prefix+l.id, &redlatch.LockOptions{TTL: l.locker.opts.TTL})
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", handler.ErrLockTimeout, err)
		}
		return err
	}
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
	go watch(lease, requestUnlock)
	return nil
}

// watch calls requestUnlock when the lock is contended, or lost.
func watch(lease *redlatch.Lease, requestUnlock func()) {
	ended := lease.Context().Done()
	select {
	case <-ended:
	case <-time.After(shortRequest):
		select {
		case <-ended:
		case <-lease.Contended():
			requestUnlock()
			return
		}
	}
	if errors.Is(lease.Err(), redlatch.ErrLost) {
		requestUnlock()
	}
}

// Unlock releases the lock. If the lock was lost while it was held, it returns
// the loss, which is redlatch.ErrLost.
func (l *lock) Unlock() error {
	l.mu.Lock()
	lease := l.lease
	l.lease = nil
	l.mu.Unlock()
	if lease == nil {
		return fmt.Errorf("redlatch: unlock of upload %q, which is not locked", l.id)
	}
	return lease.Release(context.Background())
}
