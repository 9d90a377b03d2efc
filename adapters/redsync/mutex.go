package redsync

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// A Mutex is a distributed lock. It is safe for use by many goroutines; they
// exclude each other like other clients.
type Mutex struct {
	rs            *Redsync
	name          string
	expiry        time.Duration
	tries         int
	delayFunc     DelayFunc // nil for the default
	driftFactor   *float64  // nil for the default
	timeoutFactor *float64  // nil for the default
	genValue      bool      // WithGenValueFunc was used
	setNXOnExtend bool
	failFast      bool
	quorum        int

	mu       sync.Mutex
	lease    *redlatch.Lease // nil if there was none, or the value was given
	value    string
	until    time.Time
	unlocked bool
}

// Name returns the name of the mutex: the key on the servers.
func (m *Mutex) Name() string { return m.name }

// Value returns the value of the key while the lock is held. It is empty before
// the first Lock, unless it was set WithValue.
func (m *Mutex) Value() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.value
}

// Until returns until when the lock is held unless it is extended. It is zero
// before the first Lock.
func (m *Mutex) Until() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.until
}

// Lease returns the redlatch lease of the last Lock: its fencing token, and a
// context that ends with it. It is nil before the first Lock.
func (m *Mutex) Lease() *redlatch.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lease
}

// TryLock is TryLockContext without a context.
func (m *Mutex) TryLock() error { return m.TryLockContext(context.Background()) }

// TryLockContext asks for the lock once. It returns an *ErrTaken if another
// client holds it.
func (m *Mutex) TryLockContext(ctx context.Context) error { return m.lockContext(ctx, 1) }

// Lock is LockContext without a context.
func (m *Mutex) Lock() error { return m.LockContext(context.Background()) }

// LockContext waits for the lock, for as long as its tries and the delays
// between them take, in the order in which callers came. It then returns the
// error of the last try: an *ErrTaken, or what each server said. If the context
// ends, it returns ErrFailed.
func (m *Mutex) LockContext(ctx context.Context) error { return m.lockContext(ctx, m.tries) }

func (m *Mutex) lockContext(ctx context.Context, tries int) error {
	s, err := m.session()
	if err != nil {
		return err
	}
	ctx = orBackground(ctx)
	lease, err := m.acquire(ctx, s, tries)
	if err != nil {
		return err
	}
	if !m.hold(lease) {
		lease.Release(context.WithoutCancel(ctx)) // of a lock that is over, nothing is lost
		return ErrFailed
	}
	return nil
}

// orBackground returns a context where redsync takes nil for one.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// acquire asks for the lock so many times, with delays in between.
func (m *Mutex) acquire(ctx context.Context, s *session, tries int) (*redlatch.Lease, error) {
	err := ErrFailed
	for next := 0; next < tries; {
		opts := redlatch.LockOptions{TTL: m.expiry, NoKeepAlive: true}
		wait := m.patience(&next, tries)
		var lease *redlatch.Lease
		if wait > 0 {
			opts.Wait = wait
			lease, err = s.Lock(ctx, m.name, &opts)
		} else {
			lease, err = s.TryLock(ctx, m.name, &opts)
		}
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, ErrFailed
		case !errors.Is(err, redlatch.ErrHeld) && !errors.Is(err, redlatch.ErrNoQuorum) && !errors.Is(err, redlatch.ErrChanging):
			return nil, err // another try cannot help
		}
		err = refusal(answers(err), m.quorum, err)
	}
	return nil, err
}

// deadline returns until when a lease is held by the mutex's own drift factor.
// redlatch subtracts its own part.
func (m *Mutex) deadline(lease *redlatch.Lease) time.Time {
	until := lease.Deadline()
	if m.driftFactor != nil && *m.driftFactor > ownDrift {
		until = until.Add(-time.Duration((*m.driftFactor - ownDrift) * float64(m.expiry)))
	}
	return until
}

// hold makes the lease that of the mutex, unless it is over by now.
func (m *Mutex) hold(lease *redlatch.Lease) bool {
	until, value := m.deadline(lease), valueOf(lease)
	if !time.Now().Before(until) {
		return false
	}
	m.rs.held(until)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lease, m.value, m.until, m.unlocked = lease, value, until, false
	return true
}

// complete runs an operation, and waits for the servers that it did not wait for,
// if the mutex is to and what they answer is known.
func (m *Mutex) complete(ctx context.Context, r request, operate func() error) error {
	a := m.rs.arrivals
	if m.failFast || a == nil {
		return operate()
	}
	expected := a.expect(r, m.rs.servers)
	err := operate()
	a.wait(ctx, r, expected, m.limit(), err)
	return err
}

// Unlock is UnlockContext without a context.
func (m *Mutex) Unlock() (bool, error) { return m.UnlockContext(context.Background()) }

// UnlockContext releases the lock. It returns true if a majority of servers has
// released it, and otherwise why not: ErrLockAlreadyExpired, an *ErrTaken, or
// what each server said.
func (m *Mutex) UnlockContext(ctx context.Context) (bool, error) {
	s, err := m.session()
	if err != nil {
		return false, err
	}
	ctx = orBackground(ctx)
	m.mu.Lock()
	lease, value, unlocked := m.lease, m.value, m.unlocked
	m.mu.Unlock()
	switch {
	case unlocked, value == "":
		return false, ErrLockAlreadyExpired
	case lease != nil:
		err = m.complete(ctx, request{"release", value}, func() error { return lease.Release(ctx) })
	default:
		err = m.complete(ctx, request{"release", value}, func() error { return s.Release(ctx, m.handle(value)) })
	}
	if err != nil {
		return false, notUnlocked(m.aboutValue(err), m.quorum)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unlocked = m.unlocked || m.value == value // else it was locked again since
	return true, nil
}

// Extend is ExtendContext without a context.
func (m *Mutex) Extend() (bool, error) { return m.ExtendContext(context.Background()) }

// ExtendContext gives the lock its whole expiry again. It returns true if a
// majority of servers has done so, and otherwise why not: ErrExtendFailed with
// an *ErrTaken if the lock is lost, or what each server said.
func (m *Mutex) ExtendContext(ctx context.Context) (bool, error) {
	s, err := m.session()
	if err != nil {
		return false, err
	}
	ctx = orBackground(ctx)
	m.mu.Lock()
	lease, value, unlocked := m.lease, m.value, m.unlocked
	m.mu.Unlock()
	switch {
	case unlocked, value == "":
		err = fmt.Errorf("%w: it is not locked", redlatch.ErrLost)
	case lease != nil:
		err = m.complete(ctx, request{"extend", value}, func() error { return lease.Extend(ctx) })
		if err == nil && !m.hold(lease) {
			return false, ErrExtendFailed
		}
	default:
		err = m.complete(ctx, request{"extend", value}, func() error { return m.extendGiven(ctx, s, value) })
	}
	if errors.Is(err, redlatch.ErrLost) && m.setNXOnExtend && ctx.Err() == nil {
		if err := m.lockContext(ctx, 1); err != nil {
			return false, fmt.Errorf("%w: %w", ErrExtendFailed, err)
		}
		return true, nil
	}
	if err != nil {
		return false, notExtended(m.aboutValue(err), len(s.nodes), m.quorum)
	}
	return true, nil
}

// extendGiven extends a lock of which only the value is known.
func (m *Mutex) extendGiven(ctx context.Context, s *session, value string) error {
	lease, err := s.Attach(ctx, m.handle(value))
	if err != nil {
		return err
	}
	until := m.deadline(lease)
	if _, err := lease.Detach(); err != nil { // or it would be extended in the background
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = until
	return nil
}

// Valid is ValidContext without a context.
//
// Deprecated: Use Until instead.
func (m *Mutex) Valid() (bool, error) { return m.ValidContext(context.Background()) }

// ValidContext asks the servers whether the lock is still held by this mutex on
// a majority of them. The answer may be out of date when it arrives.
//
// Deprecated: Use Until instead.
func (m *Mutex) ValidContext(ctx context.Context) (bool, error) {
	s, err := m.session()
	if err != nil {
		return false, err
	}
	value := m.Value()
	if value == "" {
		return false, nil
	}
	results := make([]observe.Result, len(s.nodes))
	var all sync.WaitGroup
	for i, n := range s.nodes {
		all.Go(func() {
			r := observe.Result{Node: n.String()}
			r.Reply, r.Err = n.Do(orBackground(ctx), node.Request{Op: node.OpInspect, Name: m.rs.opts.Prefix + m.name})
			if r.Reply.Status == node.Held && r.Reply.Value == value {
				r.Reply.Status = node.Granted
			}
			results[i] = r
		})
	}
	all.Wait()
	ours := 0
	for _, r := range results {
		if r.Err == nil && r.Reply.Status == node.Granted {
			ours++
		}
	}
	if ours >= m.quorum {
		return true, nil
	}
	return false, refusal(results, m.quorum, fmt.Errorf("%d of %d servers have %q with this value, and %d are needed", ours, len(results), m.name, m.quorum))
}
