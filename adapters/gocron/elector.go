package redlatchgocron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
)

// ErrNotLeader is returned by Elector.IsLeader when this replica does not lead.
var ErrNotLeader = errors.New("redlatchgocron: another replica leads, or none does")

// pause is the delay before an election is tried again after an error that did
// not end by itself.
const pause = time.Second

// ElectorOptions are the settings of an Elector. The zero value works.
type ElectorOptions struct {
	// Lock are the settings of the leader's lock. Shared, Slots and Wait
	// are refused: a replica is a candidate until it is closed.
	Lock redlatch.LockOptions

	// Logger logs who leads, and failures. Defaults to slog.Default.
	Logger *slog.Logger
}

// An Elector runs the jobs of a scheduler on one replica, the leader. It is a
// gocron.Elector. It keeps the leader's lock in the background, so IsLeader asks
// no node.
type Elector struct {
	locks *redlatch.Client
	name  string
	opts  ElectorOptions
	stop  context.CancelFunc
	ended chan struct{}

	mu    sync.Mutex
	lease *redlatch.Lease // nil if this replica does not lead
	err   error           // why it cannot be elected; nil if it can
}

// NewElector returns an elector, which is a candidate from now on. name is the
// lock's and must be the same on all replicas. Close it before the client.
func NewElector(locks *redlatch.Client, name string, opts *ElectorOptions) (*Elector, error) {
	o := optional.Value(opts)
	if err := check(locks, o.Lock); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, &redlatch.ConfigError{Field: "name", Value: name, Bound: "the name of the election, the same on all replicas"}
	}
	if o.Lock.Wait != 0 {
		return nil, &redlatch.ConfigError{Field: "Lock.Wait", Value: o.Lock.Wait,
			Bound: "left out, and not NoWait: a replica is a candidate until it is closed"}
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{locks: locks, name: name, opts: o, stop: stop, ended: make(chan struct{})}
	go e.run(ctx)
	return e, nil
}

// run is a candidate until ctx ends.
func (e *Elector) run(ctx context.Context) {
	defer close(e.ended)
	for {
		err := e.locks.Lead(ctx, e.name, &e.opts.Lock, e.lead)
		if ctx.Err() != nil {
			err = redlatch.ErrClosed
		}
		e.set(nil, err)
		switch {
		case errors.Is(err, redlatch.ErrClosed):
			return
		case err == nil:
			continue // the client closes
		}
		e.opts.Logger.Error("redlatch: no election, and tries again", "name", e.name, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// lead is a term of this replica.
func (e *Elector) lead(ctx context.Context, lease *redlatch.Lease) error {
	e.opts.Logger.Info("redlatch: leads", "name", e.name, "token", lease.Token())
	e.set(lease, nil)
	<-ctx.Done()
	e.set(nil, nil)
	e.opts.Logger.Info("redlatch: no longer leads", "name", e.name, "cause", context.Cause(ctx))
	return nil
}

func (e *Elector) set(lease *redlatch.Lease, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease, e.err = lease, err
}

// IsLeader returns nil if this replica leads: if its lease is valid in this
// moment. Otherwise the error is ErrNotLeader, together with what prevents an
// election if something does.
func (e *Elector) IsLeader(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	lease, err := e.lease, e.err
	e.mu.Unlock()
	if lease != nil {
		// The deadline may have passed before the background has noticed.
		err = lease.Err()
	}
	switch {
	case lease != nil && err == nil:
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return ErrNotLeader
}

// Lease returns the leader's lease: for its token, and its context, which ends
// when this replica no longer leads. It returns nil if the replica does not
// lead. A job that takes long should end with that context: another replica
// leads then.
func (e *Elector) Lease() *redlatch.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease
}

// Close resigns, so that another replica leads at once. Shut the scheduler down
// before. It can be called again.
func (e *Elector) Close() error {
	e.stop()
	<-e.ended
	return nil
}
