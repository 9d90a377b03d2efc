package redlatch

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// contendedEvery is how often a lease whose holder asked for it looks for waiters.
const contendedEvery = 250 * time.Millisecond

// Contended returns a channel that is closed when another client waits for the
// lock, so that a holder that can stop at any time may hand it over. It stays
// open if nobody waits before the lease ends. From the first call on, one node
// after the other is asked, four times a second; without a call nothing is
// asked. A node that keeps no list of its waiters is not asked.
func (l *Lease) Contended() <-chan struct{} {
	l.claim.Lock()
	defer l.claim.Unlock()
	if l.contended == nil {
		l.contended = make(chan struct{})
		go l.watchWaiters(l.contended)
	}
	return l.contended
}

// watchWaiters closes the channel when a node has a waiter. It logs the first
// error: a user may lack the right to look.
func (l *Lease) watchWaiters(contended chan struct{}) {
	members, ends, warned := l.c.cluster.Members(), l.Context(), false
	for i := 0; ends.Err() == nil; i++ {
		m := members[i%len(members)]
		switch waiting, err := l.waitedFor(ends, m); {
		case waiting:
			close(contended)
			return
		case err != nil && !warned && ends.Err() == nil:
			warned = true
			l.c.opts.Logger.Warn("redlatch: cannot see whether others wait, trying again", "name", l.name, "node", m.Name(), "err", err)
		}
		select {
		case <-ends.Done():
		case <-time.After(contendedEvery):
		}
	}
}

// waitedFor reports whether a node has another waiter for the lock. A node that
// did not grant it in time may still have the place in which we waited.
func (l *Lease) waitedFor(ctx context.Context, m *runner.Member) (bool, error) {
	n, ok := m.Node().(node.Lister)
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.c.cluster.NodeTimeout())
	defer cancel()
	look, err := n.Look(ctx, l.claim.Key())
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(look.Waiters, func(w node.Waiter) bool { return w.Value == l.claim.Core().Value() }) {
		look.Waiting--
	}
	return look.Waiting > 0, nil
}
