package redsync

import "time"

// An Option configures a mutex.
type Option interface {
	Apply(*Mutex)
}

// OptionFunc is a function that configures a mutex.
type OptionFunc func(*Mutex)

// Apply calls f.
func (f OptionFunc) Apply(m *Mutex) { f(m) }

// A DelayFunc returns how long to wait before a try. The first try that waits
// has the number 1.
type DelayFunc func(tries int) time.Duration

// WithExpiry sets how long the lock is held unless it is extended, from 10 ms
// on. Defaults to 8 s.
func WithExpiry(expiry time.Duration) Option {
	return OptionFunc(func(m *Mutex) { m.expiry = expiry })
}

// WithTries sets how often Lock asks. With the delay between two tries it makes
// the time for which Lock waits; while it waits, Lock may ask more often.
// Defaults to 32.
func WithTries(tries int) Option {
	return OptionFunc(func(m *Mutex) { m.tries = tries })
}

// WithRetryDelay sets the delay between two tries. Defaults to a random one
// from 50 to 250 ms.
func WithRetryDelay(delay time.Duration) Option {
	return WithRetryDelayFunc(func(int) time.Duration { return delay })
}

// WithRetryDelayFunc sets what returns the delay before each try. Lock calls it
// for many tries in advance, to know how long to wait. A waiter that has to poll
// does so after a random part of the first delay.
func WithRetryDelayFunc(delay DelayFunc) Option {
	return OptionFunc(func(m *Mutex) { m.delayFunc = delay })
}

// WithDriftFactor sets which part of the expiry the clocks may drift apart,
// from 0 to less than 1. Until is earlier by so much. redlatch always allows for
// 1 % and 2 ms, so a smaller factor changes nothing. Defaults to 0.01.
func WithDriftFactor(factor float64) Option {
	return OptionFunc(func(m *Mutex) { m.driftFactor = &factor })
}

// WithTimeoutFactor sets for which part of the expiry a server may take to
// answer, which must be from 1 ms to 1 min. Mutexes with different times have
// separate clients. Defaults to a tenth, from 250 ms to 2 s.
func WithTimeoutFactor(factor float64) Option {
	return OptionFunc(func(m *Mutex) { m.timeoutFactor = &factor })
}

// WithGenValueFunc is not supported: Lock returns an error. The value of a
// redlatch lock begins with random digits and names its owner, by which waiters
// and operators know it.
func WithGenValueFunc(func() (string, error)) Option {
	return OptionFunc(func(m *Mutex) { m.genValue = true })
}

// WithValue makes the mutex that of a lock which another Mutex holds, here or in
// another process: Unlock, Extend and Valid are then about that lock. The value
// is what that Mutex returns by Value; it must be of this package too.
func WithValue(value string) Option {
	return OptionFunc(func(m *Mutex) { m.value = value })
}

// WithFailFast lets Extend and Unlock return as soon as a majority of servers has
// decided. Otherwise they wait for the other servers too, for as long as a
// server may take to answer. Lock never does, and nothing does after Open.
// Defaults to false.
func WithFailFast(b bool) Option {
	return OptionFunc(func(m *Mutex) { m.failFast = b })
}

// WithShufflePools has no effect: redlatch asks all servers at the same time.
func WithShufflePools(bool) Option { return OptionFunc(func(*Mutex) {}) }

// WithSetNXOnExtend lets Extend acquire the lock again if it was lost and nobody
// holds it. The mutex then has another Value: it is another lock, and its
// fencing token is higher.
func WithSetNXOnExtend() Option {
	return OptionFunc(func(m *Mutex) { m.setNXOnExtend = true })
}
