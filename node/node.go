package node

import (
	"context"
	"time"
)

// A Node is one independent store that can grant a lock. A client uses one
// Node, or a majority of several.
//
// A Node executes each Request atomically with respect to every other Request
// for the same name, from any process. Package nodetest is the conformance
// suite; start a new kind of node with it.
//
// A node declares its other abilities by implementing small interfaces:
// Starter, Queuer, Identifier, Slow, Guarded, Waker, Lister, Evidencer, Examiner.
type Node interface {
	// Do executes one request and returns one reply. A refusal is a Reply; an
	// error means that the node could not decide. An error that wraps ErrUnsent
	// promises that the request had no effect and will have none. After any
	// other error the request may have been executed, or may be executed later.
	Do(ctx context.Context, req Request) (Reply, error)

	// String names the node in errors, in logs, and in the membership that
	// guarded nodes are marked with, so that all clients must use the same
	// name. It is stable, differs between nodes, and holds no secret.
	String() string

	// Close frees the node's resources. Locks on it are not changed.
	Close() error
}

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
	// GuardsAlone reports whether the guard is wanted even if this is the only
	// node: because another server, which lacks the last writes, can replace
	// it.
	GuardsAlone() bool
}

// ReplicaCounter is implemented by a Guarded node that can require replicas: it
// counts those that are online before it grants.
type ReplicaCounter interface {
	Guarded
	CountsReplicas()
}

// ReplicaLister is implemented by a Guarded node that knows how many replicas
// there are besides those that are online: behind Sentinel.
type ReplicaLister interface {
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
