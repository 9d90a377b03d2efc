package redlatch

import (
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

const (
	// MaxNodes is the highest number of nodes that a client accepts.
	MaxNodes = protocol.MaxNodes

	// OutagePatience is how long Lock waits for a quorum of nodes if the caller set no
	// limit: neither Wait nor a deadline of its context. Lock asks at least three times,
	// because a single round of slow nodes can take as long.
	OutagePatience = protocol.OutagePatience

	// NoWait as LockOptions.Wait asks the nodes once, and waits neither for holders
	// nor for servers.
	NoWait = -1

	// NoReplicas as Cluster.Replicas states that no replica is required.
	NoReplicas = -1

	// GuardAuto is GuardOn for several nodes, for a master that Sentinel manages, and
	// for a database, etcd or ZooKeeper, if all nodes can be guarded: a file and memory
	// cannot. Otherwise it is GuardOff: during the quarantine of a single plain Redis
	// server or a single Redis Cluster no other node could grant locks.
	GuardAuto GuardMode = 0
	// GuardOn writes a marker to every node, and quarantines a node that has
	// lost it.
	GuardOn GuardMode = 1
	// GuardOff writes no markers and ignores quarantines. A node that restarts
	// without its data can then grant a lock that another client still holds. A
	// marker of another membership is still refused, unless AnyMembership is
	// set.
	GuardOff GuardMode = 2

	// KindLease is a lease of this package.
	KindLease HolderKind = "lease"
	// KindPlain is a string that a foreign Redlock client set.
	KindPlain HolderKind = "plain"
	// KindForeign is a key that is no lock: it is not a string.
	KindForeign HolderKind = "foreign"
	// KindReserved is a waiter that was notified and may take the lock.
	KindReserved HolderKind = "reserved"
)

// GuardMode says whether nodes that may have forgotten locks are quarantined.
type GuardMode uint8

// HolderKind says what sort of client holds a lock.
type HolderKind = holders.Kind

// Node is one independent store that can grant a lock. Package node, which is
// for authors of nodes, defines it.
type Node = node.Node

// Token is the fencing number of a lease. Of two leases on one name, the one
// whose attempt began after the other was acquired has the higher token. Pass
// it to the resource that the lock protects, and let the resource refuse a
// token lower than the highest it has seen. As text it has 20 digits, which
// compare like the numbers.
type Token = node.Token

// ConfigError says which setting is not valid.
type ConfigError = node.ConfigError

// Package admin needs the inside of a client, and tests a clock. Neither is for
// lock users, so that the names of what is embedded are not exported.
type (
	carrier  = clientaccess.Carrier
	settings = clientaccess.Settings
)
