package etcd

import (
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/node"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a cluster may say. The errors of a Node wrap them.
var (
	// ErrAuth: user or password are wrong, or the user lacks the right to the keys.
	ErrAuth = errors.New("etcd refuses the user: grant it readwrite on the keys with the prefix")
	// ErrNoSpace: the database is full, and etcd writes nothing more.
	ErrNoSpace = errors.New("etcd's database is full: compact and defragment it, then disarm the alarm")
	// ErrNoLeader: most of the members do not answer each other, or elect a leader.
	ErrNoLeader = errors.New("etcd has no leader: most of its members must run")
	// ErrCompacted: what a watch has to catch up with was compacted. The node watches
	// anew.
	ErrCompacted = errors.New("etcd has compacted what was to be watched")
	// ErrRemoved: the member was removed from the cluster, or has stopped.
	ErrRemoved = errors.New("the member of etcd was removed or has stopped: name members that run")
	// ErrTooLarge: a row is larger than the cluster's limit for a request.
	ErrTooLarge = errors.New("etcd refuses a row of this size: use fewer readers or waiters, or raise --max-request-bytes")
)

var errClosed = errors.New("the node is closed")

// kinds are the errors of the server. unsent says that it has done nothing.
var kinds = []struct {
	is     error
	theirs []error
	unsent bool
}{
	{ErrAuth, []error{rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrUserNotFound, rpctypes.ErrAuthNotEnabled}, true},
	{ErrNoSpace, []error{rpctypes.ErrNoSpace}, true},
	{ErrTooLarge, []error{rpctypes.ErrRequestTooLarge}, true},
	{ErrCompacted, []error{rpctypes.ErrCompacted}, false},
	{ErrRemoved, []error{rpctypes.ErrStopped, rpctypes.ErrMemberNotFound}, false},
	{ErrNoLeader, []error{rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout,
		rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrUnhealthy}, false},
	{nil, []error{rpctypes.ErrTooManyRequests, rpctypes.ErrLeaseNotFound}, true},
}

// explain adds to an error what it means, and whether the server has done nothing.
func explain(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range kinds {
		for _, theirs := range k.theirs {
			if !same(err, theirs) {
				continue
			}
			if k.is != nil {
				err = fmt.Errorf("%w (%w)", k.is, err)
			}
			if k.unsent {
				err = fmt.Errorf("%w (%w)", err, node.ErrUnsent)
			}
			return err
		}
	}
	if status.Code(err) == codes.ResourceExhausted { // the client refuses to send it
		return fmt.Errorf("%w (%w)", ErrTooLarge, err)
	}
	return err
}

// same compares an error with one of etcd's by its text: the client returns some as
// errors of gRPC.
func same(err, theirs error) bool {
	return err != nil && (errors.Is(err, theirs) || rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(theirs))
}
