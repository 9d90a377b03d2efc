// Package replay stands in for clients that no registry of this run has: it
// sends what they are published to send, and takes the answers as they do. It
// shows what their wire format does to redlatch and redlatch to it, and nothing
// of their retries, timers or bugs beyond it.
package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/test/interop/drive"
)

// Format is the wire format of a client.
type Format struct {
	Name string
	// Version is that of the source from which the format was read.
	Version string
	// Prefix is what the client puts before a name.
	Prefix string
	// Take sets the key if it may; extending, an Extend does the same to a key
	// that is held. Both report whether the server agreed.
	Take   func(ctx context.Context, r *goredis.Client, key, value string, ttl time.Duration) (bool, error)
	Extend func(ctx context.Context, r *goredis.Client, key, old, value string, ttl time.Duration) (bool, error)
	Give   func(ctx context.Context, r *goredis.Client, key, value string) (bool, error)
	// Quorum is how many of n servers must agree. Defaults to a majority.
	Quorum func(n int) int
	// Leaves is set for a client that leaves behind what a failed attempt was
	// granted.
	Leaves bool
	// NewValue is set for a client that extends under a new value.
	NewValue bool
	// Single is set for a client that knows one server alone.
	Single bool
	// Registry is where the client itself is; empty if it is nowhere.
	Registry string
	// Breaches are the scenarios in which the format breaks a rule.
	Breaches []string
	// open replaces all of the above for a client that works otherwise.
	open func(server *goredis.Client) drive.Lock
}

// Reason says why the client is replayed.
func (f *Format) Reason() string {
	if f.Registry == "" {
		return "it is in no registry"
	}
	return f.Registry + " is no registry of this run, and Debian has no package"
}

// Open returns the lock of a client with this format.
func (f *Format) Open(addresses []string) (string, drive.Lock) {
	l := &lock{f: f}
	for _, a := range addresses {
		l.servers = append(l.servers, goredis.NewClient(&goredis.Options{Addr: a, MaxRetries: -1}))
	}
	if f.open != nil {
		return f.Version, f.open(l.servers[0])
	}
	return f.Version, l
}

type lock struct {
	f          *Format
	servers    []*goredis.Client
	key, value string
}

func (l *lock) quorum() int {
	if l.f.Quorum != nil {
		return l.f.Quorum(len(l.servers))
	}
	return len(l.servers)/2 + 1
}

func (l *lock) Acquire(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	key, value, start := l.f.Prefix+name, rand.Text(), time.Now()
	n, err := l.each(func(r *goredis.Client) (bool, error) { return l.f.Take(ctx, r, key, value, ttl) })
	if n >= l.quorum() && valid(start, ttl) {
		l.key, l.value = key, value
		return true, nil
	}
	if !l.f.Leaves {
		l.each(func(r *goredis.Client) (bool, error) { return l.f.Give(ctx, r, key, value) })
	}
	return false, err
}

func (l *lock) Extend(ctx context.Context, ttl time.Duration) (bool, error) {
	if l.f.Extend == nil {
		return false, drive.ErrCannot
	}
	value, start := l.value, time.Now()
	if l.f.NewValue {
		value = rand.Text()
	}
	n, err := l.each(func(r *goredis.Client) (bool, error) {
		return l.f.Extend(ctx, r, l.key, l.value, value, ttl)
	})
	l.value = value
	if n >= l.quorum() && valid(start, ttl) {
		return true, nil
	}
	return false, err
}

func (l *lock) Release(ctx context.Context) (bool, error) {
	n, err := l.each(func(r *goredis.Client) (bool, error) { return l.f.Give(ctx, r, l.key, l.value) })
	if n >= l.quorum() {
		return true, nil
	}
	return false, err
}

// each asks the servers one after the other, as most of these clients do.
func (l *lock) each(ask func(*goredis.Client) (bool, error)) (int, error) {
	n, errs := 0, []error(nil)
	for _, r := range l.servers {
		ok, err := ask(r)
		if ok {
			n++
		}
		if err != nil && !errors.Is(err, goredis.Nil) {
			errs = append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}

// valid is the validity of the published algorithm, which all of them have.
func valid(start time.Time, ttl time.Duration) bool {
	return ttl-time.Since(start)-ttl/100-2*time.Millisecond > 0
}

// yes reports whether an answer means that it was done.
func yes(reply any, err error) (bool, error) {
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	return err == nil && (reply == "OK" || reply == int64(1)), err
}

// script runs a script on one key.
func script(ctx context.Context, r *goredis.Client, text, key string, args ...any) (bool, error) {
	return yes(r.Eval(ctx, text, []string{key}, args...).Result())
}

// setNX is SET with NX and PX.
func setNX(ctx context.Context, r *goredis.Client, key, value string, ttl time.Duration) (bool, error) {
	return yes(r.Do(ctx, "SET", key, value, "NX", "PX", ttl.Milliseconds()).Result())
}

// giveOwn deletes the key if the value is ours.
func giveOwn(ctx context.Context, r *goredis.Client, key, value string) (bool, error) {
	return script(ctx, r, `
		local mine = redis.call('GET', KEYS[1]) == ARGV[1]
		return mine and redis.call('DEL', KEYS[1]) or 0`, key, value)
}

// extendOwn gives the key its time again if the value is ours.
func extendOwn(ctx context.Context, r *goredis.Client, key, old, _ string, ttl time.Duration) (bool, error) {
	return script(ctx, r, `
		local mine = redis.call('GET', KEYS[1]) == ARGV[1]
		return mine and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0`, key, old, ttl.Milliseconds())
}

// extendOwnOrFree also sets the key if there is none.
func extendOwnOrFree(ctx context.Context, r *goredis.Client, key, old, _ string, ttl time.Duration) (bool, error) {
	return script(ctx, r, `
		local now = redis.call('GET', KEYS[1])
		if now and now ~= ARGV[1] then return 0 end
		redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
		return 1`, key, old, ttl.Milliseconds())
}
