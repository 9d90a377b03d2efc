package runner

import (
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/node"
)

var (
	// ErrNodeTimeout is for a node that did not answer within its time limit.
	ErrNodeTimeout = errors.New("redlatch: node did not answer within its time limit")

	// ErrNotFresh is for nodes that were declared new, but are or have been in
	// service.
	ErrNotFresh = errors.New("redlatch: nodes are not new")

	// ErrUnconfirmed is for a node that was not marked, because too few nodes
	// confirm the membership.
	ErrUnconfirmed = errors.New("redlatch: membership is not confirmed")

	// ErrPending is for a node that had not answered when the round was
	// decided.
	ErrPending = errors.New("redlatch: not waited for")

	// errSuspect is for a node that was not asked, because it does not answer
	// and enough calls to it are in flight.
	errSuspect = fmt.Errorf("redlatch: node is not answering (%w)", node.ErrUnsent)
)
