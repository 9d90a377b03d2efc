package redsync

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	pools "github.com/go-redsync/redsync/v4/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/store/redis/direct"
)

const (
	// maxExpiry is the longest expiry, and the MaxTTL over pools: without a
	// guard nothing depends on it.
	maxExpiry = 30 * 24 * time.Hour
	// maxHold is the longest time for which redlatch extends a lock. redsync has
	// no limit.
	maxHold = 365 * 24 * time.Hour
)

// Redsync makes mutexes on one set of servers. It is safe for use by many
// goroutines.
type Redsync struct{ *sessions }

// New returns a Redsync over pools of redsync. The restart guard is off, as if
// these were redsync's own locks. What is wrong with the pools, such as one
// server that is listed twice, Lock returns.
func New(pools ...pools.Pool) *Redsync {
	return NewWithOptions(&redlatch.Options{Guard: redlatch.GuardOff, Cluster: redlatch.Cluster{MaxTTL: maxExpiry}}, pools...)
}

// NewWithOptions is New with the options of the redlatch client: a Prefix, a
// Logger, the restart guard. If the guard is to be on, Membership must be set: a
// pool has no address, by which clients could compare their membership.
func NewWithOptions(opts *redlatch.Options, pools ...pools.Pool) *Redsync {
	o := optional.Value(opts)
	r := open(len(pools), o, nil)
	arrivals := new(arrivals)
	r.arrivals, r.connect = arrivals, func() ([]redlatch.Node, error) {
		if o.Guard != redlatch.GuardOff && o.Membership == "" {
			return nil, &redlatch.ConfigError{Field: "Membership", Value: "", Bound: "the name of the membership, unless Guard is GuardOff: pools have no address"}
		}
		return poolNodes(pools, arrivals)
	}
	return r
}

// Open returns a Redsync over the servers with the given addresses, such as
// redis://host:6379, with connections of its own. A release then notifies the
// next waiter. The zero Options work: the restart guard is on for several
// servers, which are prepared once with redlatch init, and an expiry is 30 s at
// most. Addresses that are not valid are an error of Lock.
func Open(opts *redlatch.Options, addresses ...string) *Redsync {
	o := optional.Value(opts)
	return open(len(addresses), o, func() ([]redlatch.Node, error) { return direct.Nodes(addresses...) })
}

func open(servers int, opts redlatch.Options, connect func() ([]redlatch.Node, error)) *Redsync {
	opts.MaxHold = cmp.Or(opts.MaxHold, maxHold)
	r := &Redsync{&sessions{opts: opts, servers: servers, connect: connect, open: map[settings]*session{}}}
	// Nobody closes a Redsync: redsync has no way to.
	runtime.AddCleanup(r, (*sessions).retire, r.sessions)
	return r
}

// NewMutex returns a mutex of the given name. An option that is not valid is an
// error of Lock.
func (r *Redsync) NewMutex(name string, options ...Option) *Mutex {
	m := &Mutex{rs: r, name: name, expiry: 8 * time.Second, tries: 32, quorum: r.servers/2 + 1}
	for _, o := range options {
		o.Apply(m)
	}
	return m
}

// Close releases the locks that are still held, and closes what Open connected.
// Pools stay open. A program need not call it: when the Redsync and its mutexes
// are no longer used, it happens by itself, after the last lock has expired.
func (r *Redsync) Close() error { return r.sessions.close() }

// settings are what redlatch sets for a client, and redsync for a mutex.
type settings struct {
	limit time.Duration // for an answer of a server; 0 for the client's default
	delay time.Duration // between two tries; 0 for the client's default
}

// session is a client and its nodes.
type session struct {
	*redlatch.Client
	nodes []redlatch.Node
}

// sessions are the clients of a Redsync, one for each of the settings that its
// mutexes have. It does not refer to the Redsync, which could else not be
// cleaned up.
type sessions struct {
	opts    redlatch.Options
	servers int
	connect func() ([]redlatch.Node, error)
	// arrivals are what servers have answered; nil if that is not known.
	arrivals *arrivals

	mu     sync.Mutex
	open   map[settings]*session
	closed bool
	until  time.Time // the latest deadline of a lock
}

// session returns the client for the settings.
func (s *sessions) session(want settings) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, redlatch.ErrClosed
	}
	if found := s.open[want]; found != nil {
		return found, nil
	}
	nodes, err := s.connect()
	if err != nil {
		return nil, err
	}
	opts := s.opts
	opts.NodeTimeout = cmp.Or(want.limit, opts.NodeTimeout)
	opts.RetryDelay = cmp.Or(want.delay, opts.RetryDelay)
	client, err := redlatch.New(nodes, &opts)
	if err != nil {
		return nil, fmt.Errorf("redsync: %w", err)
	}
	made := &session{client, nodes}
	s.open[want] = made
	return made, nil
}

// held records until when a lock is held.
func (s *sessions) held(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.After(s.until) {
		s.until = until
	}
}

// retire closes the clients once no lock is valid any more: closing a client
// releases its locks, and a program may rely on a lock whose mutex it dropped.
func (s *sessions) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	time.AfterFunc(time.Until(s.until), func() { s.close() })
}

func (s *sessions) close() error {
	s.mu.Lock()
	all := s.open
	s.open, s.closed = nil, true
	s.mu.Unlock()
	var failed []error
	for _, one := range all {
		failed = append(failed, one.Close())
	}
	return errors.Join(failed...)
}
