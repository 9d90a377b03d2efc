package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// The errors of a Node wrap one of these, if it was the cause.
var (
	// ErrNoSession: no server can be reached, or none answers. The error says why the
	// last try failed.
	ErrNoSession = errors.New("no session with any server")
	// ErrNotServing: a server cannot serve now.
	ErrNotServing = errors.New("closes the connection at once: it has no quorum, or lags behind what this session has seen")
	// ErrExpired: the session has expired. No lock ends with it.
	ErrExpired = errors.New("the session has expired; a new one begins by itself")
	// ErrLost: the connection was lost while a request was in flight.
	ErrLost = errors.New("the connection to the server was lost; the client reconnects by itself")
	// ErrAuth: the ACL of the znodes does not allow it.
	ErrAuth = errors.New("the znodes belong to another user, or the password is wrong: use the user that created them")
	// ErrTooLarge: a row is longer than jute.maxbuffer allows.
	ErrTooLarge = errors.New("longer than jute.maxbuffer allows: raise it on all servers, and set maxbuffer in the address")
	// ErrNoParent: the root cannot be created.
	ErrNoParent = errors.New("the parent of the root does not exist: create it")
)

var (
	errClosed     = fmt.Errorf("the node is closed (%w)", node.ErrUnsent)
	errIdentities = errors.New("there are several identities: somebody has written to the znodes by hand. Remove the root")
	// errMoved says that a read took place in two sessions.
	errMoved = errors.New("the session was replaced by another one meanwhile")
)

// again reports whether a read that failed so is repeated, with the next session.
func again(err error) bool {
	return errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, errMoved)
}

// explain says in plain words what an error means.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) || errors.Is(err, zk.ErrInvalidACL):
		// The server refused it, so it had no effect.
		return fmt.Errorf("%w: %w (%w)", ErrAuth, err, node.ErrUnsent)
	case errors.Is(err, zk.ErrSessionExpired):
		return fmt.Errorf("%w: %w", ErrExpired, err)
	case errors.Is(err, zk.ErrConnectionClosed):
		return fmt.Errorf("%w: %w", ErrLost, err)
	case errors.Is(err, zk.ErrNoServer):
		// The client took it back before it was sent.
		return fmt.Errorf("%w: %w (%w)", ErrNoSession, err, node.ErrUnsent)
	case errors.Is(err, zk.ErrShortBuffer):
		return fmt.Errorf("the request is %w (%w)", ErrTooLarge, node.ErrUnsent)
	}
	return err
}

// unprepared is the error of a store that lacks a znode.
func (s *store) unprepared(path string) error {
	return fmt.Errorf("the znode %s is missing: %w (%w)", path, casnode.ErrUnprepared, node.ErrUnsent)
}
