package redlatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Limits of what a caller may set.
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
	// maxWait is the longest Wait; a longer one is probably a wrong unit.
	maxWait = 365 * 24 * time.Hour
)

// Options are the settings of a Client. The zero value works.
type Options struct {
	// Cluster is what all clients of the same nodes have in common.
	Cluster

	// Prefix is put before every name; together they have up to 512 bytes.
	// Defaults to none, so that other Redlock clients find the lock under the
	// same key.
	Prefix string

	// Label names the owner of a lock, after its host and process id, in up to
	// 64 bytes. Defaults to the name of the program.
	Label string

	// TTL is the time to live of a lock whose LockOptions set none, at least 10
	// ms. After a crash of its holder a lock stays held for up to this time; a
	// living holder extends it. If MaxTTL is not set, guarded nodes decide at
	// the first lock whether it is too long. Defaults to 10 s, or to MaxTTL if
	// that is shorter.
	TTL time.Duration

	// MaxHold is the longest time for which a lease is extended, so that a
	// hanging holder does not keep a lock for ever. Defaults to 24 h.
	MaxHold time.Duration

	// NodeTimeout is how long a node may take to answer. A round in which too
	// few nodes answer by then fails. Once a quorum has answered, a round ends
	// 250 ms after its start, or after four times what the quorum took if that
	// is longer, without the other nodes' answers. Keep NodeTimeout small
	// beside the TTL, and above the time it takes to connect. A round never
	// waits longer than its TTL. Defaults to a tenth of the lock's TTL, from
	// 250 ms to 2 s, or to more if a node asks for it.
	NodeTimeout time.Duration

	// RetryDelay is the longest random delay between two tries for a lock
	// that is held; the shortest is a fifth of it. Defaults to 200 ms.
	RetryDelay time.Duration

	// FenceRetention is how long a node remembers the highest token of a name
	// that is no longer used. It must be more than 30 s; more than MaxTTL, and at
	// least 3 s, if that is less. Defaults to 1 h.
	FenceRetention time.Duration

	// CompletedRetention is how long nodes remember that an occurrence of a job
	// is completed; see Client.Once. Callers of one job use the same; if not,
	// the longest that the nodes know of counts. Defaults to 7 days.
	CompletedRetention time.Duration

	// Guard says whether a node that may have forgotten locks is quarantined
	// until those locks have expired. A node may forget when it restarts, is
	// flushed, or is promoted without the last writes. Defaults to GuardAuto.
	Guard GuardMode

	// AnyMembership ignores markers of other memberships, if the guard is off.
	// It is for two applications that share a server but no lock names. Two
	// clients that set it and have different memberships can both hold one
	// lock. Defaults to false.
	AnyMembership bool

	// AssumeFresh declares, before the first lock, that nodes without a trace
	// of earlier use are new. They are trusted at once instead of after a
	// quarantine. It is for tests and for the very first start. A program that
	// always sets it has no guard against the loss of all nodes' data at once.
	// Defaults to false.
	AssumeFresh bool

	// Logger logs what an operator needs to know. What endangers locks, such as a
	// server that may evict them, is an error. By default errors are logged, by slog.Default,
	// and that Lock waits for a quarantine.
	Logger *slog.Logger

	// Observer is notified of every lock, round and lease, for traces and
	// metrics. Defaults to none.
	Observer observe.Observer

	settings // those of tests
}

// Cluster is what all clients of the same nodes have in common. Guarded nodes
// keep it in their markers and refuse a client with other values; of what a
// client leaves out, all but the Membership is taken from the markers. Clients of
// nodes that are not guarded must all set the same.
type Cluster struct {
	// Membership names the nodes. Guarded nodes refuse clients with another
	// membership: another name, or another number of nodes. Clients that reach
	// the same nodes by different addresses set the same name. Defaults to the
	// names of the nodes.
	Membership string

	// MaxTTL is the longest time to live that a lock may have. Set it in every client:
	// after the loss of all data no marker tells it them. A third of it, from
	// 1 s to 10 s, is the window: how far a token may differ from a node's clock.
	// Defaults to 30 s.
	MaxTTL time.Duration

	// Replicas is how many replicas of each node must be online, with a report in the
	// last 2 s, for the node to grant and extend. With it, a master that is cut off
	// stops before the replica that was promoted in its place grants. Set it behind
	// Sentinel, to the number of all replicas: with fewer, one that changes sides unseen
	// lets a second holder in. It makes the quarantine 4 s longer. NoReplicas states
	// that none is required, which allows two holders after a failover. Defaults to none
	// required.
	Replicas int
}

// LockOptions are the settings of one lock. The zero value works.
type LockOptions struct {
	// TTL is the time to live. Defaults to the client's.
	TTL time.Duration

	// Shared makes the caller a reader. Any number of readers hold the lock
	// together, and never together with a caller that did not set Shared, a
	// writer. A writer that waits is not overtaken by readers that come later.
	// A reader cannot become a writer; see Lease.Downgrade for the reverse.
	// Defaults to false: the lock has one holder.
	Shared bool

	// Slots makes the lock a semaphore: at most so many callers hold it, each
	// in a slot of its own; see Lease.Slot. All callers of a name must set the
	// same number, from 1 to 64: another number is a *ConfigError while the
	// lock is held. It cannot be combined with Shared. Defaults to 0: the
	// lock has one holder, and no slots.
	Slots int

	// Wait is the longest time that Lock waits, for holders and for servers; see
	// Lock. NoWait asks the nodes once. A quarantine ends by itself: the time for
	// which Lock waits for it does not count, up to one whole quarantine and
	// OutagePatience for its beginning. Defaults to no limit but the context's.
	Wait time.Duration

	// MaxHold is the longest time for which the lease is extended. Defaults to
	// the client's.
	MaxHold time.Duration

	// Keep is how long the lock stays taken from its acquisition on, in the
	// store: after the release, and after a crash. It is for jobs that are
	// started at the same time on many machines whose clocks differ: the job of
	// the first may be over before the last one asks. Extensions do not shorten
	// it. It is at most the nodes' MaxTTL: a node that lost its data is
	// quarantined no longer than that. To run a job once in a longer time, use
	// Once. Defaults to 0: the release frees the lock.
	Keep time.Duration

	// NoKeepAlive disables extension in the background. The lease ends at its
	// deadline unless the caller calls Extend before. Defaults to false.
	NoKeepAlive bool

	// With NoReleaseWait, Do returns once it has sent the release, without waiting
	// for the answers: over a slow link that saves one of two round trips.
	// Close waits for them. What fails then is logged instead of returned, also
	// a loss that only the release shows. Over a pool of connections the next
	// request may overtake the release, and find the lock held. Defaults to
	// false.
	NoReleaseWait bool
}

// withDefaults returns o with every unset field set, or an error for the first
// field that is not valid.
func (o Options) withDefaults() (Options, error) {
	if err := cmp.Or(checkText("Prefix", o.Prefix, 0, maxNameLen-1), checkText("Label", o.Label, 0, maxLabelLen)); err != nil {
		return o, err
	}
	longest := cmp.Or(o.MaxTTL, maxMaxTTL) // the nodes' markers may allow as much
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
		{"FenceRetention", &o.FenceRetention, time.Hour, time.Millisecond, maxWait},
		{"CompletedRetention", &o.CompletedRetention, 7 * 24 * time.Hour, time.Second, maxWait},
	} {
		if *f.value == 0 {
			*f.value = f.deflt
		}
		if err := checkDuration(f.name, *f.value, f.min, f.max); err != nil {
			return o, err
		}
	}
	if clientaccess.Window(&o.settings) == 0 {
		clientaccess.SetWindow(&o.settings, min(max(o.MaxTTL/3, time.Second), 10*time.Second))
	}
	if least := 3 * clientaccess.Window(&o.settings); o.FenceRetention <= least {
		return o, &ConfigError{Field: "FenceRetention", Value: o.FenceRetention, Bound: fmt.Sprintf("above %v, with a MaxTTL of %v", least, o.MaxTTL)}
	}
	if o.TTL != 0 {
		if err := checkDuration("TTL", o.TTL, minTTL, longest); err != nil {
			return o, err
		}
	}
	if err := checkText("Membership", o.Membership, 0, maxNameLen); err != nil {
		return o, err
	}
	if o.Replicas < NoReplicas || o.Replicas > maxReplicas {
		return o, &ConfigError{Field: "Replicas", Value: o.Replicas, Bound: fmt.Sprintf("between 0 and %d, or NoReplicas", maxReplicas)}
	}
	o.Replicas = max(o.Replicas, 0)
	if o.Guard > GuardOff {
		return o, &ConfigError{Field: "Guard", Value: uint8(o.Guard), Bound: "GuardAuto, GuardOn or GuardOff"}
	}
	if clientaccess.Clock(&o.settings) == nil {
		clientaccess.SetClock(&o.settings, runner.NewSystemClock())
	}
	o.Logger = cmp.Or(o.Logger, slog.New(byDefault{slog.DiscardHandler}))
	return o, nil
}

// byDefault passes errors, and why a lock takes half a minute, on to what is the
// default when they come.
type byDefault struct{ slog.Handler }

func (byDefault) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && slog.Default().Enabled(ctx, level)
}

func (byDefault) Handle(ctx context.Context, line slog.Record) error {
	if line.Level < slog.LevelError && line.Message != waitsOut {
		return nil
	}
	return slog.Default().Handler().Handle(ctx, line)
}

const (
	maxReplicas = 100
	// replicaLag is how long ago a replica may have last reported to count as
	// online. It allows for one missing report: there is one a second.
	replicaLag = 2 * time.Second
)

// defaultTTL is long beside a pause of the garbage collector, and short to wait
// for after a crash.
const defaultTTL = 10 * time.Second

// withDefaults returns o with unset fields taken from the client's options.
// maxTTL is the longest time to live that the nodes allow.
func (o LockOptions) withDefaults(client *Options, maxTTL time.Duration) (LockOptions, error) {
	o.TTL = cmp.Or(o.TTL, client.TTL, min(defaultTTL, maxTTL))
	o.MaxHold = cmp.Or(o.MaxHold, client.MaxHold)
	if err := cmp.Or(
		checkDuration("TTL", o.TTL, minTTL, maxTTL),
		checkDuration("MaxHold", o.MaxHold, minTTL, maxWait),
		checkDuration("Keep", o.Keep, 0, maxTTL),
		checkWait(o.Wait),
	); err != nil {
		return o, err
	}
	if o.Slots < 0 || o.Slots > node.MaxSlots {
		return o, &ConfigError{Field: "Slots", Value: o.Slots, Bound: fmt.Sprintf("between 0 and %d", node.MaxSlots)}
	}
	if o.Slots > 0 && o.Shared {
		return o, &ConfigError{Field: "Slots", Value: o.Slots, Bound: "0 if Shared is set: a lock has readers or slots, not both"}
	}
	return o, nil
}

// share returns what the options ask for. They are valid.
func (o LockOptions) share() node.Share {
	switch {
	case o.Shared:
		return node.Share{Mode: node.Shared}
	case o.Slots > 0:
		return node.Share{Mode: node.Slotted, Slots: uint8(o.Slots)}
	}
	return node.Share{}
}

func checkWait(d time.Duration) error {
	if d != NoWait && (d < 0 || d > maxWait) {
		return &ConfigError{Field: "Wait", Value: d, Bound: fmt.Sprintf("between 0s and %s, or NoWait", long(maxWait))}
	}
	return nil
}

func checkDuration(field string, d, least, most time.Duration) error {
	switch {
	case d < least:
		return &ConfigError{Field: field, Value: d, Bound: "at least " + long(least)} // the nodes may allow less than most
	case d > most:
		return &ConfigError{Field: field, Value: d, Bound: fmt.Sprintf("between %s and %s", long(least), long(most))}
	}
	return nil
}

// long is a duration, in days if it has many.
func long(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", days)
	}
	return d.String()
}

// checkText refuses a text that cannot be shown, logged or typed: a lock's name
// appears in keys, error messages and terminals.
func checkText(field, s string, least, most int) error {
	if protocol.Printable(s, least, most) {
		return nil
	}
	bound, value := fmt.Sprintf("%d to %d bytes of UTF-8 with no control characters", least, most), s
	if len(s) < least || len(s) > most || !utf8.ValidString(s) {
		value = fmt.Sprintf("%d bytes, %q", len(s), s[:min(len(s), 32)])
	}
	if len(s) > most {
		problem := fmt.Sprintf("%s too long: %d bytes (max %d)", field, len(s), most)
		return &ConfigError{Field: field, Value: value, Bound: bound, Problem: problem}
	}
	return &ConfigError{Field: field, Value: value, Bound: bound}
}

// waitsOut is what a wait for a quarantine is logged as, by default too.
const waitsOut = "redlatch: waiting until servers leave quarantine"
