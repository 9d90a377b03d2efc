package node

import (
	"context"
	"time"
)

// A Node is one independent place that can grant a lock. A client asks one
// Node, or a majority of several.
//
// A Node executes each Request atomically with regard to every other Request
// for the same name, from whichever process. Package nodetest is the
// conformance suite; a new kind of node starts there.
//
// What a node can do beyond this it declares by implementing the small
// interfaces: Prompt, Identifier, Slow, Guarded, Waker, Lister, Evidencer,
// Examiner.
type Node interface {
	// Do executes one request and returns one reply. A refusal is a Reply; an
	// error means that the node could not say yes or no. An error that wraps
	// ErrUnsent promises that the request had no effect and will have none;
	// after any other error the request may have been executed, or may be yet.
	Do(ctx context.Context, req Request) (Reply, error)

	// String names the node in errors, in logs, and in the membership that
	// guarded nodes are marked with, so that all clients must use the same
	// name. It is stable, differs between nodes, and holds no secret.
	String() string

	// Close frees what the node holds open. Locks on it stay as they are.
	Close() error
}

// Prompt is implemented by a Node whose Do returns by the deadline of its
// context without help. A client with a single prompt node calls it on the
// caller's goroutine if the caller's context cannot end; any other call is
// watched from a second one.
type Prompt interface {
	Node
	// ReturnsByDeadline reports whether Do can be relied on to return when
	// the context's deadline passes.
	ReturnsByDeadline() bool
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

// Slow is implemented by a Node that can take longer to answer than a server
// would, and that should be waited for all the same.
type Slow interface {
	Node
	// TimeLimit is the node time limit to use where the client's options set
	// none.
	TimeLimit() time.Duration
}

// Guarded is implemented by a Node that carries a marker, by which it notices
// that it may have forgotten locks. Such a node heeds Request.Guard.
type Guarded interface {
	Node
	// GuardsAlone reports whether the guard is wanted even where this is the
	// only node: because another server, which lacks the last writes, can take
	// its place.
	GuardsAlone() bool
}

// Evidencer is implemented by a Guarded node that can say whether anything of
// locks is stored there.
type Evidencer interface {
	Node
	// Evidence returns the key of a lock, or of something that is kept beside
	// one; "" if there is none. It changes nothing, and takes as long as there
	// are keys.
	Evidence(ctx context.Context) (key string, err error)
}
