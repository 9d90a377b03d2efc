package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

// heldLock is the lock of a run, or several, while CMD runs under it. It is a
// supervise.Lease.
type heldLock struct {
	*locks
	once     onceFlag
	name     string
	acquired time.Time
	maxHold  time.Duration
	keep     time.Duration
	grace    time.Duration
	onLost   supervise.OnLost
	extends  *extensions
	say      *reporter
}

// Taken reports whether the nodes ended the lease before its deadline.
func (h *heldLock) Taken(cause error) bool {
	var nodes *redlatch.QuorumError
	return errors.As(cause, &nodes)
}

// Doomed reports that extensions fail, or that --max-hold forbids them.
func (h *heldLock) Doomed() bool { return h.extends.failure() != "" || h.maxHoldOver() }

// maxHoldOver reports that the lease ends because of --max-hold. The lease
// counts from a bit before acquired, by as much as we were delayed in between:
// hence the second grace.
func (h *heldLock) maxHoldOver() bool {
	return h.maxHold-time.Since(h.acquired) <= 2*h.grace
}

// Lost says why the lock is lost.
func (h *heldLock) Lost(cause error) error {
	failure, job := h.extends.failure(), heldSince(h.name, h.acquired)
	switch {
	case errors.Is(cause, redlatch.ErrNoQuorum):
		return fmt.Errorf("%s is no longer ours, and CMD was ended: %s", job, lostCause(cause))
	case h.maxHoldOver():
		return fmt.Errorf("%q was held for its --max-hold of %v, and CMD was ended", h.name, h.maxHold)
	case failure != "":
		return fmt.Errorf("%s could not be extended in time, and CMD was ended: %s", job, failure)
	}
	return fmt.Errorf("%s could not be extended in time, and CMD was ended: this process, or the machine, was stopped or suspended", job)
}

// Ignored warns that the lock is lost and CMD runs on.
func (h *heldLock) Ignored() {
	h.warn("%s is lost, and CMD runs on without it: %s", heldSince(h.name, h.acquired), lostCause(h.Err()))
}

func (h *heldLock) warn(format string, args ...any) { h.say.warn(h.name, format, args...) }

// outcome is that of a run whose command ended like this.
func (h *heldLock) outcome(command string, r supervise.Result) *outcome {
	switch r.End {
	case supervise.NotStarted:
		return cannotRun(command, r.Err, true)
	case supervise.TooLate:
		return lostOutcome(fmt.Errorf("%q ran out before CMD was started", h.name))
	case supervise.Lost:
		return lostOutcome(r.Err)
	case supervise.Unended:
		return lostOutcome(fmt.Errorf("%q is lost, and CMD could not be ended and runs on: end it by hand", h.name))
	}
	return &outcome{code: r.Exit.Code, signal: r.Exit.Signal, keyed: r.Keyed, event: "exited"}
}

// release frees the lock, unless it was lost. If the nodes report only now that
// it was lost, CMD may have run beside another holder: then the outcome is that
// of a lost lock.
func (h *heldLock) release(end *outcome) {
	var failed error
	if end.event != "exited" || end.code != 0 {
		failed = errFailed
	}
	err := h.free(failed)
	lost := errors.Is(err, redlatch.ErrLost)
	switch {
	case err == nil:
	case end.event == "lost":
		// The outcome says it already.
	case lost && h.onLost != supervise.Ignore:
		if end.event == "exited" {
			*end = *lostOutcome(fmt.Errorf("%q was lost before CMD ended: %s", h.name, lostCause(err)))
		}
	case h.once.onceSet && failed == nil:
		*end = *h.once.unmarked(h.name, err)
	case !h.once.onceSet && !lost:
		h.warn("%q could not be released and runs out within %v: %s", h.name, max(h.all[0].TTL(), h.keep), message(err))
	}
}
