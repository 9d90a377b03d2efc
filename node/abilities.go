package node

import (
	"context"
	"time"
)

// This file has what a Node may be able to do beyond Do, which is for locks. Without an
// ability:
//
//   - Starter: each request in flight costs a goroutine.
//   - Queuer: a release that waits for a connection runs out of time.
//   - Identifier: one server with two addresses counts as two nodes.
//   - Slow: the client's own time limit for a node applies.
//   - Guarded: there is no restart guard for any node of the client, and GuardOn is
//     refused; so is a change of the membership.
//   - Recorder: Once gets an error from the node.
//   - ReplicaCounter: Options.Replicas is refused.
//   - Evidencer: nodes that are declared fresh are not searched for old locks.
//   - Waker: waiters poll.
//   - Lister: the names cannot be listed, admin.Show has no waiters, and Lease.Contended
//     knows of none.
//   - ManyMarkers: the node has one marker.
//   - Warner: nothing is logged about risks of the server.
//   - Observing: the store is expected to have a clock.
//
// A node that can look for risks is a risk.Examiner besides. Two abilities are only for
// nodes of this project: Prompt and Lender of internal/callerreads save a goroutine.

// Starter is implemented by a Node that needs no goroutine for a request in
// flight.
type Starter interface {
	Node
	// Starts reports whether a client should call Start in place of Do.
	Starts() bool
	// Start executes a request like Do, and returns before it is answered. It
	// does not block. done is called once, with what Do returns, within limit
	// or soon after, perhaps before Start returns. It must not block.
	//
	// Requests with the same Name and Value are executed in the order in which
	// they were started, except one that fails with an error, and one with
	// Reply.Again. A client relies on that for a release, which follows an
	// OpAcquire that is not answered yet.
	Start(req Request, limit time.Duration, done func(Reply, error))
}

// Queuer is implemented by a Node with a limited number of connections, before
// which requests queue.
type Queuer interface {
	Node
	// Queued returns how many requests wait for a connection, and are not sent
	// yet. A release may wait for longer than its time limit, which begins when
	// it has a connection.
	Queued() int
}

// Identifier is implemented by a Node that can say which server it is, so that
// one server reached by two addresses is not counted twice.
type Identifier interface {
	Node
	// Identity returns a text that two nodes share only if they are the same
	// server, and the node's clock. Empty, and the zero time, mean that the
	// server did not disclose them.
	Identity(ctx context.Context) (id string, now time.Time, err error)
}

// Slow is implemented by a Node that may take longer to answer than a server,
// and that clients should wait for.
type Slow interface {
	Node
	// TimeLimit is the node time limit to use if the client's options set none.
	TimeLimit() time.Duration
}

// Guarded is implemented by a Node that carries a marker, by which it notices
// that it may have forgotten locks. Such a node obeys Request.Guard.
type Guarded interface {
	Node
	// Mark reads or writes the marker. Its errors are as those of Do.
	Mark(ctx context.Context, req MarkRequest) (MarkReply, error)
	// GuardsAlone reports whether the guard is wanted even if this is the only
	// node: because another server, which lacks the last writes, can replace
	// it.
	GuardsAlone() bool
}

// Recorder is implemented by a Node that keeps records of what is completed.
type Recorder interface {
	Node
	// Records reads or writes the records of a name. Its errors are as those of Do.
	Records(ctx context.Context, req RecordsRequest) (RecordsReply, error)
}

// ReplicaCounter is implemented by a Guarded node that can require replicas: it
// counts those that are online before it grants.
type ReplicaCounter interface {
	Guarded
	// ListedReplicas returns how many replicas the sentinels list, those that are
	// down included; known is false if the node has no sentinels, or cannot ask
	// them.
	ListedReplicas(ctx context.Context) (n int, known bool, err error)
}

// Evidencer is implemented by a Guarded node that can report whether any lock
// data is stored there.
type Evidencer interface {
	Node
	// Evidence returns the key of a lock, or of data beside one; "" if there is
	// none. It changes nothing, and takes time in proportion to the number of
	// keys.
	Evidence(ctx context.Context) (key string, err error)
}

// Waker is implemented by a Node that keeps a queue and notifies a waiter when the name
// is kept for it, so that the waiter need not poll. Wake has what else it may tell.
type Waker interface {
	Node
	// Listen calls f with every notification for the waiters that are queued
	// through this node, until stop is called. f does not block. A node may
	// open the connection for notifications when the first waiter comes. Until
	// that is up it queues nobody, or says so in Reply.Wakes.
	Listen(f func(Wake)) (stop func())
}

// Lister is implemented by a Node that can list its names and their waiters.
// Both methods change nothing.
type Lister interface {
	Node

	// List calls found once for each name that begins with prefix and is held,
	// waited for, or was broken, in no particular order and without Waiters,
	// Completed and Since. It reads the store in steps: a name that is taken or freed
	// meanwhile may be missing.
	List(ctx context.Context, prefix string, found func(Listing)) error

	// Look returns what the node knows about one name at one moment, with the
	// first MaxListed waiters and records.
	Look(ctx context.Context, name string) (Listing, error)
}

// ManyMarkers is implemented by a Guarded node that may have several markers, one
// for each server of a cluster.
type ManyMarkers interface {
	Guarded
	// ManyMarkers reports whether it takes many requests to mark the node.
	ManyMarkers() bool
}

// Warner is implemented by a Node that knows of a risk once it is connected.
type Warner interface {
	Node
	// Warnings returns what is to be logged as an error, a sentence each.
	Warnings() []string
}

// Observing is implemented by a Node whose store may have no clock. It observes then
// for how long locks have been there.
type Observing interface {
	Node
	// Clockless reports whether the store certainly has no clock.
	Clockless() bool
	// Timers returns how many timers it has started.
	Timers() int64
}
