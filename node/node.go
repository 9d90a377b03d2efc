package node

import "context"

// A Node is one independent store that can grant a lock. A client uses one
// Node, or a majority of several.
//
// A Node executes each Request atomically with respect to every other Request
// for the same name, from any process. Package nodetest is the conformance
// suite; start a new kind of node with it.
//
// A node declares its other abilities by implementing small interfaces: abilities.go
// lists them.
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
