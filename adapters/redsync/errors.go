package redsync

import (
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// ErrFailed is returned by Lock if the context ended before it had the lock.
var ErrFailed = errors.New("redsync: failed to acquire lock")

// ErrExtendFailed is returned by Extend if the lock is lost.
var ErrExtendFailed = errors.New("redsync: failed to extend lock")

// ErrLockAlreadyExpired is returned by Unlock if the lock had expired, or was
// unlocked before.
var ErrLockAlreadyExpired = errors.New("redsync: failed to unlock, lock was already expired")

// ErrTaken is returned if another client has the lock on a majority of servers.
type ErrTaken struct {
	// Nodes are those servers: their places among the pools, from 0 on.
	Nodes []int
	// Cause is redlatch's own error. For a lock that is held it is a
	// *redlatch.HeldError, which says by whom and until when.
	Cause error
}

func (err ErrTaken) Error() string {
	text := fmt.Sprintf("lock already taken, locked nodes: %v", err.Nodes)
	if err.Cause != nil {
		text += ": " + err.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (err ErrTaken) Unwrap() error { return err.Cause }

// ErrNodeTaken says that another client has the lock on one server.
type ErrNodeTaken struct {
	Node int
}

func (err ErrNodeTaken) Error() string {
	return fmt.Sprintf("node #%d: lock already taken", err.Node)
}

// RedisError is why one server could not decide.
type RedisError struct {
	Node int
	Err  error
}

func (err RedisError) Error() string { return fmt.Sprintf("node #%d: %s", err.Node, err.Err) }

// Unwrap returns the server's or the client's own error.
func (err RedisError) Unwrap() error { return err.Err }

// nodesError is an error of redlatch together with what redsync says of each
// node.
type nodesError struct {
	cause error
	each  []error
}

func (err *nodesError) Error() string { return "redsync: " + err.cause.Error() }

func (err *nodesError) Unwrap() []error { return append([]error{err.cause}, err.each...) }

// refusal returns the error of a round that found no majority, as redsync has
// it: *ErrTaken if a majority of nodes has another holder, else what each node
// said. cause is redlatch's error.
func refusal(nodes []observe.Result, quorum int, cause error) error {
	var taken []int
	err := &nodesError{cause: cause}
	for i, r := range nodes {
		switch {
		case r.Err != nil:
			err.each = append(err.each, &RedisError{i, r.Err})
		case r.Reply.Status == node.Granted:
		case r.Reply.Status == node.Behind, r.Reply.Status == node.Ahead, r.Reply.Status == node.Quarantined, r.Reply.Status == node.Misconfigured:
			err.each = append(err.each, &RedisError{i, errors.New(r.String())})
		default:
			taken = append(taken, i)
			err.each = append(err.each, &ErrNodeTaken{i})
		}
	}
	if len(taken) >= quorum {
		return &ErrTaken{taken, cause}
	}
	return err
}

// notExtended returns the error of an extension that failed.
func notExtended(err error, nodes, quorum int) error {
	answers, found := errors.AsType[*redlatch.QuorumError](err)
	switch {
	case errors.Is(err, redlatch.ErrLost) && !found:
		answers = &redlatch.QuorumError{Nodes: make([]observe.Result, nodes)} // all of them must be taken for lost
	case !found:
		return err
	}
	err = refusal(answers.Nodes, quorum, err)
	return fmt.Errorf("%w: %w", ErrExtendFailed, err)
}

// notUnlocked returns the error of a release that failed.
func notUnlocked(err error, quorum int) error {
	answers, found := errors.AsType[*redlatch.QuorumError](err)
	if !errors.Is(err, redlatch.ErrLost) {
		if !found {
			return err
		}
		return refusal(answers.Nodes, quorum, err)
	}
	var held []int
	if found {
		for i, r := range answers.Nodes {
			if r.Err == nil && (r.Reply.Status == node.Held || r.Reply.Status == node.Foreign) {
				held = append(held, i)
			}
		}
	}
	if len(held) >= quorum {
		return &ErrTaken{held, err}
	}
	return fmt.Errorf("%w: %w", ErrLockAlreadyExpired, err)
}

// answers returns what the nodes answered in the last round of a Lock that failed.
func answers(err error) []observe.Result {
	if held, ok := errors.AsType[*redlatch.HeldError](err); ok {
		return held.Nodes
	}
	if quorum, ok := errors.AsType[*redlatch.QuorumError](err); ok {
		return quorum.Nodes
	}
	return nil
}
