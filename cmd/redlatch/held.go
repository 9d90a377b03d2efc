package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// heldLock is the lock of a run, or several, while CMD runs under it. It is a
// supervise.Lease.
type heldLock struct {
	*task
	*locks
	acquired time.Time
	grace    time.Duration
	cause    string // why the lock was lost; empty if it was not
}

// Taken reports whether the nodes ended the lease before its deadline: too few
// have it, or they refuse this client.
func (h *heldLock) Taken(cause error) bool {
	return errors.Is(cause, redlatch.ErrNoQuorum) || errors.Is(cause, redlatch.ErrConfig)
}

// Doomed reports that extensions fail, or that --max-hold forbids them.
func (h *heldLock) Doomed() bool { return h.extends.failure() != "" || h.maxHoldOver() }

// maxHoldOver reports that the lease ends because of --max-hold. The lease
// counts from a bit before acquired, by as much as we were delayed in between:
// hence the second grace.
func (h *heldLock) maxHoldOver() bool {
	return h.f.maxHold-time.Since(h.acquired) <= 2*h.grace
}

// Lost says why the lock is lost.
func (h *heldLock) Lost(cause error) error {
	var err error
	failure, job := h.extends.failure(), heldSince(h.name(), h.acquired)
	switch {
	case h.Taken(cause):
		h.cause = causeTaken
		err = fmt.Errorf("%s is lost; CMD was ended: %s", job, lostCause(cause))
	case h.maxHoldOver():
		h.cause = causeMaxHold
		err = fmt.Errorf("%q reached its --max-hold of %v; CMD was ended", h.name(), h.f.maxHold)
	case failure != "":
		h.cause = causeNotExtended
		err = fmt.Errorf("%s could not be extended in time; CMD was ended: %s", job, failure)
	default:
		h.cause = causeStalled
		err = fmt.Errorf("%s could not be extended in time; CMD was ended: this process, or the machine, was paused", job)
	}
	h.say.event(slog.LevelWarn, "losing", h.name(), "losing the lock; ending the command",
		since(h.acquired).add("cause", h.cause).add("left", h.Remaining()))
	return err
}

// Ignored warns that the lock is lost and CMD runs on.
func (h *heldLock) Ignored() {
	h.cause = causeOf(h.Err())
	h.warn("%s is lost; CMD continues without it: %s", heldSince(h.name(), h.acquired), lostCause(h.Err()))
}

func (h *heldLock) warn(format string, args ...any) { h.say.warn(h.name(), format, args...) }

// outcome is that of a run whose command ended like this.
func (h *heldLock) outcome(command string, r supervise.Result) *outcome {
	switch r.End {
	case supervise.NotStarted:
		return cannotRun(command, r.Err, true)
	case supervise.TooLate:
		return lostOutcome(causeStalled, fmt.Errorf("%q expired before CMD was started", h.name()))
	case supervise.Lost:
		return lostOutcome(h.cause, r.Err)
	case supervise.Unended:
		return lostOutcome(h.cause, fmt.Errorf("%q is lost, and CMD could not be ended: end it by hand", h.name()))
	}
	return &outcome{code: r.Exit.Code, signal: r.Exit.Signal, keyed: r.Keyed, event: "exited", cause: h.cause}
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
		h.say.event(slog.LevelInfo, "released", h.name(), "lock released", since(h.acquired))
	case end.event == "lost":
		// The outcome says it already.
	case lost && h.f.onLost != supervise.Ignore:
		if end.event == "exited" {
			*end = *lostOutcome(causeOf(err), fmt.Errorf("%q was lost before CMD ended: %s", h.name(), lostCause(err)))
		}
	case h.f.given("once") && failed == nil:
		*end = *h.f.unmarked(h.name(), err)
	case !h.f.given("once") && !lost:
		h.warn("%q could not be released; it will expire within %v: %s", h.name(), max(h.all[0].TTL(), h.f.keep), message(err))
	}
}

// note tells what happens to CMD.
func (h *heldLock) note(n supervise.Note) {
	switch n.What {
	case supervise.Started:
		h.say.event(slog.LevelInfo, "started", h.name(), "command started", fields{}.add("pid", n.Pid))
	case supervise.Signalled:
		h.say.event(slog.LevelInfo, "signal", h.name(), fmt.Sprintf("CMD and what it started are sent %s: %s", signalName(n.Signal), n.Why),
			fields{}.add("signal", signalName(n.Signal)).add("why", n.Why).add("pid", n.Pid))
	case supervise.Finished:
		level := slog.LevelInfo
		if n.Exit.Code != 0 {
			level = slog.LevelWarn
		}
		h.say.event(level, "ended", h.name(), fmt.Sprintf("command exited with status %d", n.Exit.Code), since(h.acquired).add("exit", n.Exit.Code).add("pid", n.Pid))
	}
}

// tellContended tells, once for each lock, that another waits for it. It costs
// requests, so nothing is asked unless it is written.
func (h *heldLock) tellContended() {
	if !h.say.json || h.say.quiet {
		return
	}
	for _, lease := range h.all {
		contended, over := lease.Contended(), lease.Context().Done()
		go func() {
			select {
			case <-contended:
				h.say.event(slog.LevelInfo, "contended", lease.Name(), "another client waits for the lock", since(h.acquired))
			case <-over:
			}
		}()
	}
}

// The causes of a lost lock, as metrics and logs name them.
const (
	causeTaken       = "taken"        // the nodes say that it is no longer ours
	causeNotExtended = "not_extended" // too few nodes confirmed an extension in time
	causeStalled     = "stalled"      // this process, or the machine, was stopped
	causeMaxHold     = "max_hold"     // --max-hold is over
)

// lostOutcome is the outcome of a run whose lock was lost.
func lostOutcome(cause string, err error) *outcome {
	return &outcome{code: exitLost, event: "lost", cause: cause, err: err}
}

// causeOf is the cause of a lease that is lost.
func causeOf(err error) string {
	var lost *redlatch.LostError
	switch {
	case errors.Is(err, redlatch.ErrMaxHold):
		return causeMaxHold
	case !errors.As(err, &lost), lost.Err != nil:
		return causeTaken
	case lost.Last != nil:
		return causeNotExtended
	}
	return causeStalled
}

// lostCause is why a lease ended, as a part of a sentence that names the lock.
func lostCause(err error) string {
	if nodes, ok := errors.AsType[*redlatch.QuorumError](err); ok {
		return message(nodes)
	}
	if refused, ok := errors.AsType[*redlatch.ConfigError](err); ok {
		return message(refused)
	}
	if lost, ok := errors.AsType[*redlatch.LostError](err); ok {
		return message(errors.New(lost.Reason))
	}
	return message(err)
}

// heldSince names a lock that is lost, and says since when it was held.
func heldSince(name string, acquired time.Time) string {
	layout := time.TimeOnly
	held := time.Since(acquired)
	if held >= 24*time.Hour {
		layout = time.DateTime
	}
	return fmt.Sprintf("%q, held since %s (%v),", name, acquired.Format(layout), held.Round(time.Second))
}

// extensions is an Observer that keeps the result of the last extension of each
// lock, for the message that says why one was lost. While we wait it keeps our
// place in the queue.
type extensions struct {
	places
	mu      sync.Mutex
	failed  map[string]error           // by name: the last one was not confirmed
	changed func(end observe.RoundEnd) // called when extensions begin to fail, and when they succeed again
}

func (e *extensions) RoundEnd(_ context.Context, end observe.RoundEnd) {
	if end.Op != node.OpExtend {
		return
	}
	e.mu.Lock()
	before, changed := e.failed[end.Name], e.changed
	if e.failed != nil {
		e.failed[end.Name] = end.Err
	}
	e.mu.Unlock()
	// If a majority refuses, there is no other try.
	again := 2*end.Refused < len(end.Nodes)
	if changed != nil && again && (before == nil) != (end.Err == nil) {
		changed(end)
	}
}

// failure describes the last extension of a lock if it failed, and is empty
// otherwise.
func (e *extensions) failure() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, err := range e.failed {
		if err != nil {
			return message(err)
		}
	}
	return ""
}

// tellExtensions tells from now on when extensions of the locks begin to fail, and
// when they succeed again.
func (h *heldLock) tellExtensions() {
	h.extends.mu.Lock()
	defer h.extends.mu.Unlock()
	h.extends.failed = map[string]error{} // those of a leader's last term are over
	h.extends.changed = func(end observe.RoundEnd) {
		if end.Err == nil {
			h.say.event(slog.LevelInfo, "extended", end.Name, "lock is extended again", fields{}.add("left", h.Remaining()))
			return
		}
		h.say.event(slog.LevelWarn, "extending", end.Name, "lock could not be extended, trying again", fields{}.add("left", h.Remaining()).add("err", message(end.Err)))
	}
}
