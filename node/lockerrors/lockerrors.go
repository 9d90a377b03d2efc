// Package lockerrors defines the errors of locks and leases. Package redlatch returns
// them under the same names, and package observe makes labels of them. It also says the
// errors and quarantines of nodes in words.
package lockerrors

import (
	"context"
	"errors"
	"fmt"
)

// Package redlatch describes these.
var (
	ErrDeadlock   = errors.New("redlatch: lock is already held on this context")
	ErrHeld       = errors.New("redlatch: lock is held by another")
	ErrQuarantine = errors.New("redlatch: node is in quarantine")
	ErrNoQuorum   = errors.New("redlatch: no quorum of nodes")
	ErrLost       = errors.New("redlatch: lock is lost")
	ErrMaxHold    = errors.New("redlatch: lock is at the end of its MaxHold")
	ErrReleased   = errors.New("redlatch: lock is released")
	ErrDetached   = errors.New("redlatch: lease is detached")
)

// ErrNotExtended is, along with ErrLost, a lease that was lost because it was
// not extended in time.
var ErrNotExtended = errors.New("redlatch: lock was not extended in time")

// Why one waits for new servers, and what avoids that.
const (
	NewServers = "a new server looks like one that lost its locks"
	AvoidWait  = "to avoid the wait run redlatch init beforehand; or, only if these servers never held a lock, redlatch init --assume-fresh"
)

// Ended returns the error of a caller whose context ended: the context's error,
// its cause, and, as text only, what the caller waited for. It is not ErrHeld or
// ErrNoQuorum: a caller that treats those as normal must not mistake the end of
// its context for one of them.
func Ended(ctx context.Context, failure error) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if failure != nil {
		err = fmt.Errorf("%w while waiting: %v", err, failure)
	}
	return err
}
