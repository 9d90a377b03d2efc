// Package redlatchcontroller elects the leader among managers of
// controller-runtime by redlatch, instead of by a Lease object of Kubernetes: for
// controllers of several clusters, and for the fencing token that each term has.
//
//	mgr, err := redlatchcontroller.New(config, manager.Options{}, locks, "shop-operator", nil)
//	// add controllers as usual
//	err = mgr.Start(ctx)
//
// On every replica the manager serves webhooks, probes and metrics, and runs what
// needs no election. Controllers, and all else that needs an election, run on the
// replica that leads. Its manager stops before the deadline of its lease, so
// before another replica can lead.
package redlatchcontroller

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/margin"
)

const (
	// defaultGrace is what a manager has to stop, unless its options say other.
	defaultGrace = 2 * time.Second
	// slack is what a manager may need beyond that.
	slack = 500 * time.Millisecond
)

// Manager is a manager.Manager whose leader is elected by redlatch.
type Manager struct {
	manager.Manager
	locks *redlatch.Client
	name  string
	opts  *redlatch.LockOptions
	grace time.Duration

	elected chan struct{} // closed when this replica leads; then term is set
	term    context.Context
	lease   atomic.Pointer[redlatch.Lease]
}

// New returns a manager like manager.New. name is that of the election, the same
// on all replicas; the lock's options are those of redlatch.Client.Lead.
//
// The options must leave out LeaderElection. GracefulShutdownTimeout is how long
// the manager may take to stop; it begins to stop so long before the lease's
// deadline. It defaults to 2 s, and must be below half of the TTL, which is 10 s
// by default.
func New(config *rest.Config, options manager.Options, locks *redlatch.Client, name string, opts *redlatch.LockOptions) (*Manager, error) {
	switch {
	case locks == nil:
		return nil, &redlatch.ConfigError{Field: "locks", Value: nil, Bound: "a client of redlatch"}
	case options.LeaderElection:
		return nil, &redlatch.ConfigError{Field: "LeaderElection", Value: true, Bound: "left out: redlatch elects the leader"}
	}
	grace := defaultGrace
	if options.GracefulShutdownTimeout != nil {
		grace = *options.GracefulShutdownTimeout
	}
	if grace < 0 {
		return nil, &redlatch.ConfigError{Field: "GracefulShutdownTimeout", Value: grace, Bound: "0 or above: a manager stops before its lease's deadline"}
	}
	options.GracefulShutdownTimeout = &grace
	mgr, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	return &Manager{Manager: mgr, locks: locks, name: name, opts: opts, grace: grace, elected: make(chan struct{})}, nil
}

// Elected is closed when this replica leads.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// Lease returns the leader's lease, for its token: pass it to what controllers
// write to outside of Kubernetes. It returns nil before this replica leads.
func (m *Manager) Lease() *redlatch.Lease { return m.lease.Load() }

// Add adds a runnable. If it needs an election, it starts when this replica
// leads.
func (m *Manager) Add(r manager.Runnable) error {
	switch of := r.(type) {
	case manager.LeaderElectionRunnable:
		if !of.NeedLeaderElection() {
			return m.Manager.Add(r)
		}
	case interface{ GetCache() cache.Cache }:
		return m.Manager.Add(r)
	}
	led := led{m, r}
	if w, ok := r.(warm); ok {
		return m.Manager.Add(struct {
			manager.Runnable
			warm
		}{led, w})
	}
	return m.Manager.Add(led)
}

// warm is a runnable that prepares itself before it leads.
type warm interface{ Warmup(context.Context) error }

// led is a runnable that needs an election.
type led struct {
	m *Manager
	r manager.Runnable
}

// Start starts the runnable when this replica leads, until it no longer does.
func (l led) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.m.elected:
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(l.m.term, stop)()
	return l.r.Start(ctx)
}

// Start starts the manager, and is a candidate until ctx ends. When this replica
// no longer leads, the manager stops, and Start returns an error. The process must
// end then, as after an election of controller-runtime: a manager cannot be
// started again.
//
// The lock is released when everything has stopped. If a runnable does not stop
// in time, it is not: it expires after its TTL.
func (m *Manager) Start(ctx context.Context) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	var failed, lost error
	stopped, resigned := make(chan struct{}), make(chan error, 1)
	go func() {
		defer stop()
		resigned <- m.locks.Lead(run, m.name, m.opts, func(ctx context.Context, lease *redlatch.Lease) error {
			early := m.grace + slack
			if early >= lease.TTL()/2 {
				return &redlatch.ConfigError{Field: "GracefulShutdownTimeout", Value: m.grace, Bound: "half a second less than half of the TTL"}
			}
			term, cancel := margin.Context(ctx, lease.Remaining, early)
			defer cancel()
			m.term = term
			m.lease.Store(lease)
			close(m.elected)
			<-term.Done()
			if run.Err() == nil {
				lost = context.Cause(term)
			}
			stop() // Lead then does not wait for another term either
			<-stopped
			if m.grace == 0 || errors.Is(failed, context.DeadlineExceeded) {
				lease.Detach() // something may still run that counts on the lock
			}
			return nil
		})
	}()
	failed = m.Manager.Start(run)
	close(stopped)
	stop()
	err := <-resigned
	if lost != nil || failed != nil || ctx.Err() != nil {
		return errors.Join(lost, failed)
	}
	return err
}
