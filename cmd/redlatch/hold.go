package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/redlatch/redlatch"
)

const (
	// heartbeat is how often the lease is looked at though nothing is due:
	// timers stand still while the machine is suspended, leases do not.
	heartbeat = 100 * time.Millisecond
	// sweep is how often we look whether what CMD left behind is gone.
	sweep = 5 * time.Millisecond
	// patience is how long a killed group is waited for. One that is stuck in
	// the kernel must not keep us for ever.
	patience = 5 * time.Second
)

// hold runs CMD within its lease: it ends when CMD and everything in its
// process group is gone, which it sees to before the lease's deadline.
type hold struct {
	name     string
	lease    *redlatch.Lease
	acquired time.Time
	maxHold  time.Duration
	extends  *extensions
	plan     plan
	say      *reporter
	signals  chan os.Signal

	child      *child
	guardian   *guardian
	unguarded  time.Time // since when there is none, though there was
	exited     bool      // CMD is gone; its group may not be
	ended      ending    // how it went
	interrupts int
	received   []os.Signal   // those that we got ourselves, and that end a process
	extended   chan struct{} // told when an extension of our own is over
	trying     bool          // one is under way
	tried      bool          // one was of no use
	warned     bool          // that CMD does not take our signals

	ending  bool      // the group was asked to end
	killAt  time.Time // when it is killed; set if ending
	killed  time.Time // when it was
	lostErr error     // why it had to be, if the lock is what it was about
}

// run starts cmd and returns when it is over, with the lock still ours unless
// the outcome says otherwise.
func (h *hold) run(cmd *exec.Cmd) *outcome {
	h.startGuardian()
	defer h.guardian.dismiss()
	if left := h.lease.Remaining(); left <= h.plan.grace && h.plan.mode != onLostIgnore {
		// We were held up between getting the lock and here.
		if h.lease.Extend(context.Background()) != nil || h.lease.Remaining() <= h.plan.grace {
			return lostOutcome(fmt.Errorf("%q ran out before CMD was started", h.name))
		}
	}
	// Not a moment later: stopped while CMD runs, we could not keep its lock.
	notify(h.signals, stopping())
	h.guardian.keep(h.lease.Remaining())
	child, err := startChild(cmd, h.guardian, h.plan.mode != onLostIgnore)
	if err != nil {
		return cannotRun(cmd.Args[0], err, true)
	}
	defer child.close()
	h.child, h.extended = child, make(chan struct{}, 1)

	timer := time.NewTimer(0)
	defer timer.Stop()
	lost, unguarded := h.lease.Context().Done(), h.guardian.lost()
	for {
		select {
		case h.ended = <-child.exited:
			h.exited = true
		case s := <-child.stopped:
			h.stopped(s)
		case s := <-h.signals:
			h.signal(s)
		case <-h.extended:
			h.trying = false
			h.tried = h.lease.Remaining() <= h.plan.grace
		case <-lost:
			lost = nil
			h.ignored()
		case <-unguarded:
			unguarded = nil
			h.unguarded = time.Now()
		case <-timer.C:
		}
		wait, over := h.look()
		if over {
			break
		}
		timer.Reset(wait)
	}
	if cause := h.lease.Err(); cause != nil && h.plan.mode != onLostIgnore {
		h.lose(cause)
	}
	if h.lostErr != nil {
		return lostOutcome(h.lostErr)
	}
	return h.exit()
}

// ending is how CMD ended: with an exit code, or by a signal, of which the code
// is what a shell makes of it.
type ending struct {
	code   int
	signal syscall.Signal // 0 for none
}

// exit is the outcome of a run that kept its lock. A signal that is meant to end
// a process ended us as it ended CMD. A CMD that handles one and exits has an
// exit code, and that counts.
func (h *hold) exit() *outcome {
	end := &outcome{code: h.ended.code, event: "exited"}
	switch s := h.ended.signal; {
	case s == syscall.SIGKILL && h.interrupts > 1: // ours
		end.code, end.signal = exitSignal+int(syscall.SIGINT), syscall.SIGINT
	case s != 0 && ends(s):
		end.signal = s
		end.keyed = !slices.Contains(h.received, os.Signal(s)) && h.child.keyed(s)
	}
	return end
}

// startGuardian has somebody end CMD if we are killed. With onLostIgnore CMD is
// meant to run on without its lock, and so without us.
func (h *hold) startGuardian() {
	if h.plan.mode == onLostIgnore {
		return
	}
	var err error
	if h.guardian, err = startGuardian(h.plan); err != nil {
		h.say.warn(h.name, "CMD runs without a guardian, which would end it if redlatch were killed: %w", err)
	}
}

// missGuardian tells, once, that the guardian is gone and CMD is not. One that
// was killed along with CMD is not missed.
func (h *hold) missGuardian(now time.Time) {
	if h.unguarded.IsZero() || now.Sub(h.unguarded) < heartbeat || h.exited || !h.killed.IsZero() {
		return
	}
	h.unguarded = time.Time{}
	h.say.warn(h.name, "the guardian of CMD was killed: from now on nobody would end CMD if redlatch were killed too")
}

// look does what is due, and returns how long until it must look again, or
// that all is over.
func (h *hold) look() (wait time.Duration, over bool) {
	now := time.Now()
	h.guardian.keep(h.lease.Remaining())
	h.missGuardian(now)
	if h.exited {
		switch {
		case !h.child.left():
			return 0, true
		case !h.killed.IsZero() && now.Sub(h.killed) > patience:
			h.say.warn(h.name, "something that CMD started does not end, though it was killed")
			return 0, true
		case !h.ending:
			h.end(now.Add(h.plan.grace))
		}
	}
	if !h.exited && !h.killed.IsZero() && now.Sub(h.killed) > patience {
		h.lostErr = fmt.Errorf("%q is lost, and CMD could not be ended and runs on: end it by hand", h.name)
		return 0, true
	}
	if h.killed.IsZero() {
		left := h.lease.Remaining()
		cause := h.lease.Err()
		var taken *redlatch.QuorumError
		switch h.plan.due(left, errors.As(cause, &taken)) {
		case stepKill:
			h.lose(cause)
			h.kill()
		case stepTerm:
			killAt := now.Add(left - h.plan.margin)
			if cause != nil {
				killAt = now.Add(h.plan.short)
			} else if !h.ending && h.hope() {
				break
			}
			h.lose(cause)
			h.end(killAt)
		}
		if h.ending && !now.Before(h.killAt) {
			h.kill()
		}
	}
	wait = heartbeat
	if h.exited {
		wait = sweep
	}
	if h.killed.IsZero() {
		if h.ending {
			wait = min(wait, h.killAt.Sub(now))
		}
		if left := h.lease.Remaining(); left > 0 {
			wait = min(wait, h.plan.next(left))
		}
	}
	return max(wait, time.Millisecond), false
}

// hope reports whether a lease that is low on time may yet be saved. It may if
// no extension failed so far: then not the nodes but we were held up, and one
// try of our own, beside the keeper's, is worth its time.
func (h *hold) hope() bool {
	if h.tried || h.extends.failure() != "" || h.maxHoldOver() {
		return false
	}
	if !h.trying {
		h.trying = true
		go func() {
			h.lease.Extend(context.Background())
			h.extended <- struct{}{}
		}()
	}
	return true
}

// maxHoldOver reports that it is --max-hold that ends the lease. The lease counts
// from a bit before we do, by as much as we were held up in between: hence the
// second grace.
func (h *hold) maxHoldOver() bool {
	return h.maxHold-time.Since(h.acquired) <= 2*h.plan.grace
}

// lose notes, once, why the lock is lost.
func (h *hold) lose(cause error) {
	if h.lostErr != nil || h.exited && cause == nil {
		return
	}
	failure, job := h.extends.failure(), heldSince(h.name, h.acquired)
	switch {
	case errors.Is(cause, redlatch.ErrNoQuorum):
		h.lostErr = fmt.Errorf("%s is no longer ours, and CMD was ended: %s", job, lostCause(cause))
	case h.maxHoldOver():
		h.lostErr = fmt.Errorf("%q was held for its --max-hold of %v, and CMD was ended", h.name, h.maxHold)
	case failure != "":
		h.lostErr = fmt.Errorf("%s could not be extended in time, and CMD was ended: %s", job, failure)
	default:
		h.lostErr = fmt.Errorf("%s could not be extended in time, and CMD was ended: this process, or the machine, stood still", job)
	}
}

// ignored tells that the lock is lost and CMD runs on, if that was asked for.
func (h *hold) ignored() {
	if h.plan.mode == onLostIgnore && !h.exited {
		h.say.warn(h.name, "%s is lost, and CMD runs on without it: %s", heldSince(h.name, h.acquired), lostCause(h.lease.Err()))
	}
}

// end asks the group to end, and sets when it is killed if it does not.
func (h *hold) end(killAt time.Time) {
	if !h.ending {
		h.ending = true
		h.killAt = killAt
		h.guardian.hurry()
		h.check(h.child.terminate())
	}
	if killAt.Before(h.killAt) {
		h.killAt = killAt
	}
}

func (h *hold) kill() {
	h.ending = true
	h.killed = time.Now()
	h.killAt = h.killed
	h.check(h.child.kill())
}

// check warns, once, of a group that does not take our signals: that of another
// user, since sudo.
func (h *hold) check(err error) {
	if err == nil || h.warned || h.exited {
		return
	}
	h.warned = true
	h.say.warn(h.name, "CMD could not be ended: %w", err)
}

// signal passes a signal on to CMD.
func (h *hold) signal(s os.Signal) {
	if isStop(s) {
		h.pause(false)
		return
	}
	if ends(s) {
		h.received = append(h.received, s)
		h.guardian.hurry()
	}
	if s == os.Interrupt {
		h.interrupts++
	}
	if h.interrupts > 1 && s == os.Interrupt {
		h.kill()
		return
	}
	h.child.forward(s)
}

// stopped reacts to CMD having been stopped.
func (h *hold) stopped(s os.Signal) {
	if !h.child.wantsTerminal(s) && h.child.isJobStop(s) {
		h.pause(true)
	}
}

// pause stops everyone, us included: while we stand still nobody extends the
// lease, so CMD must not run. When somebody has us go on, so does CMD, if the
// lease still stands.
func (h *hold) pause(stopped bool) {
	if !h.child.pause(stopped) {
		return
	}
	if h.plan.mode == onLostIgnore || h.lease.Remaining() > h.plan.margin {
		h.child.resume()
	}
}
