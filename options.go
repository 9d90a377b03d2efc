package redlatch

import (
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
)

// Bounds of what a caller may set.
const (
	// maxNameLen is the longest name of a lock, in bytes, prefix included.
	maxNameLen = 512
	// maxLabelLen is the longest label of an owner, in bytes.
	maxLabelLen = 64
	// minTTL is the shortest time to live.
	minTTL = protocol.MinTTL
	// maxMaxTTL keeps a time to live, in milliseconds, well within what every
	// node can count.
	maxMaxTTL = protocol.MaxMaxTTL
	// maxWait is the longest bounded wait; a longer one is a mistake in the
	// unit.
	maxWait = 365 * 24 * time.Hour
	// maxTries is the highest bound on tries.
	maxTries = 1_000_000
)

// Options are the settings of a Client. The zero value works.
type Options struct {
	// Prefix is put before every name; together they have up to 512 bytes.
	// Defaults to none, so that other Redlock clients find the lock under the
	// same key.
	Prefix string

	// Label is what the owner of a lock is called besides its host and
	// process id, in up to 64 bytes. Defaults to the name of the program.
	Label string

	// TTL is the time to live of a lock whose LockOptions set none, from 10 ms
	// on. A lock
	// outlives a crashed holder by as much; a living one extends it. Where
	// MaxTTL is left open, guarded nodes decide at the first lock whether it
	// is too long. Defaults to 10 s, or to MaxTTL if that is shorter.
	TTL time.Duration

	// MaxTTL is the longest time to live that a lock may ask for. Clients of
	// guarded nodes must agree on it; one that leaves it open takes what the
	// nodes are marked with. Defaults to 30 s.
	MaxTTL time.Duration

	// MaxHold is how long a lease is extended at the most, so that a holder
	// that hangs does not keep a lock for ever. Defaults to 24 h.
	MaxHold time.Duration

	// NodeTimeout is how long a node may take to answer, before too few answers
	// are an error. Once a quorum has answered, the others are waited for no
	// longer than 250 ms, or four times what the quorum took. Keep it small
	// beside the TTL, and above the time it takes to connect. A round never
	// waits for longer than its TTL. Defaults to a tenth of the lock's TTL, from
	// 250 ms to 2 s, or to more if a node asks for it.
	NodeTimeout time.Duration

	// RetryDelay is the longest random delay between two tries for a lock
	// that is held; the shortest is a fifth of it. Defaults to 200 ms.
	RetryDelay time.Duration

	// NoToken leaves out fencing tokens: leases have token 0, and nothing
	// protects the resource from a holder that was paused beyond its
	// deadline. Defaults to false.
	NoToken bool

	// TokenWindow is how far a proposed token may be from a node's clock.
	// Clients of the same nodes must agree on it; one that leaves it open
	// takes what guarded nodes are marked with. Defaults to 10 s.
	TokenWindow time.Duration

	// Replicas is how many replicas of each node must be online for it to
	// grant and extend, so that a master which is cut off stops before a
	// replica that was promoted in its place grants. Behind Sentinel set it:
	// to the number of all replicas, or, if the sentinels run on the same
	// hosts, to one more than can stay on the smaller side of a network that
	// is cut in two. NoReplicas states that none is required, which leaves two
	// holders possible there. Clients of guarded nodes must agree on it; one
	// that leaves it open takes what the nodes are marked with. Defaults to
	// none required.
	Replicas int

	// ReplicaLag is how long ago a replica may have been heard from to count
	// as online: whole seconds, since servers show no parts of them. The
	// quarantine is longer by it and 2 s. Defaults to 2 s where Replicas are
	// required.
	ReplicaLag time.Duration

	// FenceRetention is how long a node remembers the highest token of a name
	// that is no longer used. It must be above three times the TokenWindow.
	// Defaults to 1 h.
	FenceRetention time.Duration

	// Guard says whether a node that may have forgotten locks, because it
	// restarted, was flushed, or was promoted without the last writes, sits
	// out until those have run out. Defaults to GuardAuto.
	Guard GuardMode

	// NodeList names the list of nodes. Clients with another list are refused
	// by guarded nodes; clients that reach the same nodes by other addresses
	// give the list the same name. Defaults to the names of the nodes.
	NodeList string

	// AnyMembership has markers of other lists of nodes ignored, where the guard
	// is off: for two applications that share a server, and no names of locks.
	// Two clients of one lock that set it and have different lists can both
	// hold it. Defaults to false.
	AnyMembership bool

	// AssumeFresh declares, before the first lock, that nodes on which nothing
	// is left of an earlier service are new: they are trusted at once instead
	// of after a quarantine. It is for tests and for the very first start; a
	// program that always sets it gives up the guard against all nodes losing
	// their data together. Defaults to false.
	AssumeFresh bool

	// Clock is the time by which the client measures. Defaults to the
	// system's.
	Clock Clock

	// Logger is told what an operator would want to know. Defaults to none.
	Logger *slog.Logger

	// Observer is told of every lock, round and lease, for traces and
	// metrics. Defaults to none.
	Observer Observer
}

// OutagePatience is how long Lock waits for a quorum of nodes if the caller has
// set no bound: neither Wait nor Tries, nor a deadline of its context. It asks
// three times at least: nodes that are merely slow may take as long as that to
// miss the time limit of a single round.
const OutagePatience = protocol.OutagePatience

// LockOptions are the settings of one lock. The zero value works.
type LockOptions struct {
	// TTL is the time to live. Defaults to the client's.
	TTL time.Duration

	// Wait is how long Lock waits at the most, for holders and for servers; see
	// there. Defaults to no bound but the context's.
	Wait time.Duration

	// Tries is how often Lock asks the nodes at the most, whatever it waits
	// for; a lock that is offered to us in between is taken all the same.
	// Defaults to no bound.
	Tries int

	// Barge takes the lock the moment it is free, even if others have waited
	// for longer: more hand-overs a second, at their expense. Defaults to
	// false: the lock is given in the order in which callers came.
	Barge bool

	// MaxHold is how long the lease is extended at the most. Defaults to the
	// client's.
	MaxHold time.Duration

	// NoKeepAlive leaves extension to the caller. The lease ends at its
	// deadline unless Extend is called before. Defaults to false.
	NoKeepAlive bool
}

// withDefaults returns o with every unset field set, or the first field that
// is out of bounds.
func (o Options) withDefaults() (Options, error) {
	if err := checkText("Prefix", o.Prefix, 0, maxNameLen-1); err != nil {
		return o, err
	}
	if err := checkText("Label", o.Label, 0, maxLabelLen); err != nil {
		return o, err
	}
	longest := o.MaxTTL
	if longest == 0 {
		longest = maxMaxTTL // the nodes may be marked for as much
	}
	for _, f := range []struct {
		name     string
		value    *time.Duration
		deflt    time.Duration
		min, max time.Duration
	}{
		{"MaxTTL", &o.MaxTTL, 30 * time.Second, minTTL, maxMaxTTL},
		{"MaxHold", &o.MaxHold, 24 * time.Hour, minTTL, maxWait},
		{"NodeTimeout", &o.NodeTimeout, protocol.LimitFor(defaultTTL), time.Millisecond, time.Minute},
		{"RetryDelay", &o.RetryDelay, 200 * time.Millisecond, time.Millisecond, time.Hour},
		{"TokenWindow", &o.TokenWindow, 10 * time.Second, time.Millisecond, time.Hour},
		{"FenceRetention", &o.FenceRetention, time.Hour, time.Millisecond, maxWait},
	} {
		if *f.value == 0 {
			*f.value = f.deflt
		}
		if err := checkDuration(f.name, *f.value, f.min, f.max); err != nil {
			return o, err
		}
	}
	if o.FenceRetention <= 3*o.TokenWindow {
		return o, &ConfigError{Field: "FenceRetention", Value: o.FenceRetention,
			Bound: fmt.Sprintf("above three times the TokenWindow of %v", o.TokenWindow)}
	}
	if o.TTL != 0 {
		if err := checkDuration("TTL", o.TTL, minTTL, longest); err != nil {
			return o, err
		}
	}
	if err := o.checkReplicas(); err != nil {
		return o, err
	}
	if err := checkText("NodeList", o.NodeList, 0, maxNameLen); err != nil {
		return o, err
	}
	if o.Guard > GuardOff {
		return o, &ConfigError{Field: "Guard", Value: uint8(o.Guard), Bound: "GuardAuto, GuardOn or GuardOff"}
	}
	if o.Clock == nil {
		o.Clock = runner.NewSystemClock()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// NoReplicas as Options.Replicas states that no replica is required.
const NoReplicas = -1

const (
	maxReplicas = 100
	// defaultReplicaLag lets one report of a replica be missing: there is one
	// a second.
	defaultReplicaLag = 2 * time.Second
	maxReplicaLag     = time.Minute
)

// checkReplicas sets what is unset of Replicas and ReplicaLag.
func (o *Options) checkReplicas() error {
	if o.Replicas < NoReplicas || o.Replicas > maxReplicas {
		return &ConfigError{Field: "Replicas", Value: o.Replicas, Bound: fmt.Sprintf("from 0 to %d, or NoReplicas", maxReplicas)}
	}
	o.Replicas = max(o.Replicas, 0)
	switch {
	case o.Replicas == 0 && o.ReplicaLag != 0:
		return &ConfigError{Field: "ReplicaLag", Value: o.ReplicaLag, Bound: "left out where Replicas is not set"}
	case o.Replicas == 0:
		return nil
	case o.ReplicaLag == 0:
		o.ReplicaLag = defaultReplicaLag
	case o.ReplicaLag%time.Second != 0:
		return &ConfigError{Field: "ReplicaLag", Value: o.ReplicaLag, Bound: "whole seconds: servers show no parts of them"}
	}
	return checkDuration("ReplicaLag", o.ReplicaLag, time.Second, maxReplicaLag)
}

// defaultTTL outlives a crashed holder by little, and a pause of the garbage
// collector by much.
const defaultTTL = 10 * time.Second

// withDefaults returns o with what it leaves unset taken from the client's
// options; maxTTL is the longest time to live that the nodes allow.
func (o LockOptions) withDefaults(client Options, maxTTL time.Duration) (LockOptions, error) {
	if o.TTL == 0 {
		o.TTL = client.TTL
	}
	if o.TTL == 0 {
		o.TTL = min(defaultTTL, maxTTL)
	}
	if err := checkDuration("TTL", o.TTL, minTTL, maxTTL); err != nil {
		return o, err
	}
	if o.MaxHold == 0 {
		o.MaxHold = client.MaxHold
	}
	if err := checkDuration("MaxHold", o.MaxHold, minTTL, maxWait); err != nil {
		return o, err
	}
	if err := checkDuration("Wait", o.Wait, 0, maxWait); err != nil {
		return o, err
	}
	if o.Tries < 0 || o.Tries > maxTries {
		return o, &ConfigError{Field: "Tries", Value: o.Tries, Bound: fmt.Sprintf("from 0 to %d", maxTries)}
	}
	return o, nil
}

func checkDuration(field string, d, least, most time.Duration) error {
	if d < least || d > most {
		return &ConfigError{Field: field, Value: d, Bound: fmt.Sprintf("from %v to %v", least, most)}
	}
	return nil
}

// checkText refuses what cannot be shown, logged or typed: a lock's name ends
// up in keys, error messages and terminals.
func checkText(field, s string, least, most int) error {
	if protocol.Printable(s, least, most) {
		return nil
	}
	bound, value := fmt.Sprintf("%d to %d bytes of UTF-8 with no control characters", least, most), s
	if len(s) < least || len(s) > most || !utf8.ValidString(s) {
		value = fmt.Sprintf("%d bytes, %q", len(s), s[:min(len(s), 32)])
	}
	return &ConfigError{Field: field, Value: value, Bound: bound}
}
