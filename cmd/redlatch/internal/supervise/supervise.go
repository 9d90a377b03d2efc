package supervise

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/redlatch/redlatch/cmd/internal/signals"
)

const (
	// heartbeat is how often the lease is checked though nothing is due: timers
	// do not run while the machine is suspended, leases do.
	heartbeat = 100 * time.Millisecond
	// sweep is how often we check whether what CMD left behind is gone.
	sweep = 5 * time.Millisecond
	// patience is how long a killed group is waited for. A process that hangs in
	// the kernel must not keep us for ever.
	patience = 5 * time.Second
)

// state is that of the process group. The package comment draws it.
type state int

const (
	starting state = iota
	running
	stopping // TERM was sent
	killed   // KILL was sent
	ended    // nothing is left, or we gave up
)

// ending is how CMD ended.
type ending struct {
	Exit
	signal syscall.Signal // that ended it, whichever it is; 0 for none
}

// supervisor is one run.
type supervisor struct {
	Config
	child    *child
	guardian *guardian

	state    state
	killAt   time.Time // when the group is killed; set from stopping on
	killedAt time.Time // when KILL was sent; set in killed

	exit *ending // how CMD ended; nil while it runs

	received   []os.Signal // that we got, and that end a process
	interrupts int

	extended  chan struct{} // gets one when our own extension is over
	trying    bool          // our own extension is in flight
	tried     bool          // our own extension was of no use
	unguarded time.Time     // when the guardian was lost; zero once it was reported
	warned    bool          // that CMD does not take our signals
	lost      error         // why the run had to end; nil if not because of the lease
	unended   bool          // CMD does not end
}

// Run starts CMD and returns when it and its process group are gone.
func Run(c Config) Result {
	s := &supervisor{Config: c, extended: make(chan struct{}, 1)}
	s.startGuardian()
	defer s.guardian.dismiss()
	if s.tooLate() {
		return Result{End: TooLate}
	}
	// Not earlier: while we wait for a lock, a stop is for us alone. Not later:
	// if we are stopped while CMD runs, nobody extends its lease.
	signals.Notify(s.Signals, stops())
	s.guardian.keep(s.Lease.Remaining())
	child, err := startChild(s.Cmd, s.guardian, s.Plan.mode != Ignore)
	if err != nil {
		return Result{End: NotStarted, Err: err}
	}
	defer child.close()
	s.child, s.state = child, running
	s.note(Note{What: Started})
	s.loop()
	return s.result()
}

// tooLate reports whether the lease is too short to start CMD: we were delayed
// since we got it. One extension is tried.
func (s *supervisor) tooLate() bool {
	short := func() bool { return s.Lease.Remaining() <= s.Plan.grace }
	return s.Plan.mode != Ignore && short() && (s.Lease.Extend(context.Background()) != nil || short())
}

// loop waits for events until the group has ended.
func (s *supervisor) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	over, unguarded := s.Lease.Context().Done(), s.guardian.lost()
	for {
		select {
		case end := <-s.child.exited:
			s.exit = &end
			s.note(Note{What: Finished, Exit: end.Exit})
		case sig := <-s.child.stopped:
			if !s.child.wantsTerminal(sig) && s.child.isJobStop(sig) {
				s.pause(true)
			}
		case sig := <-s.Signals:
			s.signal(sig)
		case <-s.extended:
			s.trying = false
			s.tried = s.Lease.Remaining() <= s.Plan.grace
		case <-over:
			over = nil
			if s.Plan.mode == Ignore && s.exit == nil {
				s.Lease.Ignored()
			}
		case <-unguarded:
			unguarded = nil
			s.unguarded = time.Now()
		case <-timer.C:
		}
		now := time.Now()
		s.guardian.keep(s.Lease.Remaining())
		s.missGuardian(now)
		if s.advance(now); s.state == ended {
			return
		}
		timer.Reset(s.wait(now))
	}
}

// advance changes the state if something is due.
func (s *supervisor) advance(now time.Time) {
	stuck := s.state == killed && now.Sub(s.killedAt) > patience
	switch {
	case s.exit == nil && stuck:
		s.unended = true
		s.state = ended
		return
	case s.exit == nil:
	case !s.child.left():
		s.state = ended
		return
	case stuck:
		s.Warn("something that CMD started does not end, though it was killed")
		s.state = ended
		return
	case s.state == running:
		s.stop(now.Add(s.Plan.grace), "CMD has ended and left them running")
	}
	if s.state == killed {
		return
	}
	s.followPlan(now)
	if s.state == stopping && !now.Before(s.killAt) {
		s.kill("the grace is over")
	}
}

// followPlan does what the plan asks for.
func (s *supervisor) followPlan(now time.Time) {
	left, cause := s.Lease.Remaining(), s.Lease.Err()
	switch s.Plan.due(left, cause != nil && s.Lease.Taken(cause)) {
	case stepKill:
		s.lose(cause)
		s.kill("the lock is being lost")
	case stepTerm:
		killAt := now.Add(left - s.Plan.margin)
		if cause != nil {
			killAt = now.Add(s.Plan.short)
		} else if s.state == running && s.hope() {
			return
		}
		s.lose(cause)
		s.stop(killAt, "the lock is being lost")
	}
}

// wait returns how long nothing is due.
func (s *supervisor) wait(now time.Time) time.Duration {
	wait := heartbeat
	if s.exit != nil {
		wait = sweep
	}
	if s.state == stopping {
		wait = min(wait, s.killAt.Sub(now))
	}
	if left := s.Lease.Remaining(); s.state != killed && left > 0 {
		wait = min(wait, s.Plan.next(left))
	}
	return max(wait, time.Millisecond)
}

// hope reports whether a lease that is low on time may still be saved. It may
// if no extension has failed: then the nodes are well and this process was
// delayed. One extension of our own, beside the owner's, is tried.
func (s *supervisor) hope() bool {
	if s.tried || s.Lease.Doomed() {
		return false
	}
	if !s.trying {
		s.trying = true
		go func() {
			s.Lease.Extend(context.Background())
			s.extended <- struct{}{}
		}()
	}
	return true
}

// lose notes, once, why the lease is lost. A lease that runs low after CMD has
// exited, while the rest of its group is ended, is not lost.
func (s *supervisor) lose(cause error) {
	if s.lost == nil && (s.exit == nil || cause != nil) {
		s.lost = s.Lease.Lost(cause)
	}
}

// stop sends the group TERM, and sets when it is killed. Later calls can only
// move that moment forward.
func (s *supervisor) stop(killAt time.Time, why string) {
	if s.state == running {
		s.state = stopping
		s.killAt = killAt
		s.guardian.hurry()
		s.check(s.child.terminate())
		s.note(Note{What: Signalled, Signal: syscall.SIGTERM, Why: why}) // a log may block
	}
	if killAt.Before(s.killAt) {
		s.killAt = killAt
	}
}

// kill sends the group KILL.
func (s *supervisor) kill(why string) {
	s.state = killed
	s.killedAt = time.Now()
	s.check(s.child.kill())
	s.note(Note{What: Signalled, Signal: syscall.SIGKILL, Why: why}) // a log may block
}

// check warns, once, if CMD does not take our signals: sudo makes it another
// user's.
func (s *supervisor) check(err error) {
	if err == nil || s.warned || s.exit != nil {
		return
	}
	s.warned = true
	s.Warn("CMD could not be ended: %w", err)
}

// signal forwards a signal that we received. A second interrupt kills.
func (s *supervisor) signal(sig os.Signal) {
	if isStop(sig) {
		s.pause(false)
		return
	}
	if signals.Ends(sig) {
		s.received = append(s.received, sig)
		s.guardian.hurry()
	}
	if sig == os.Interrupt {
		if s.interrupts++; s.interrupts > 1 {
			s.kill("a second interrupt")
			return
		}
	}
	s.child.forward(sig)
	if number, ok := sig.(syscall.Signal); ok {
		s.note(Note{What: Signalled, Signal: number, Why: "redlatch got it"})
	}
}

// note passes on what happened to CMD.
func (s *supervisor) note(n Note) {
	if s.Note != nil {
		n.Pid = s.child.pid()
		s.Note(n)
	}
}

// pause stops CMD and us: while we are stopped nobody extends the lease, so CMD
// must not run. When we are continued, so is CMD, if the lease is still valid.
func (s *supervisor) pause(stopped bool) {
	if !s.child.pause(stopped) {
		return
	}
	if s.Plan.mode == Ignore || s.Lease.Remaining() > s.Plan.margin {
		s.child.resume()
	}
}

// startGuardian starts the process that ends CMD if we are killed. With Ignore
// there is none: CMD is meant to run on without its lease, and so without us.
func (s *supervisor) startGuardian() {
	if s.Plan.mode == Ignore {
		return
	}
	var err error
	if s.guardian, err = startGuardian(s.Plan); err != nil {
		s.Warn("CMD runs without a guardian, which would end it if redlatch were killed: %w", err)
	}
}

// missGuardian reports, once, that the guardian is gone while CMD runs. It waits
// a moment: a guardian that was killed together with CMD is not reported.
func (s *supervisor) missGuardian(now time.Time) {
	if s.unguarded.IsZero() || now.Sub(s.unguarded) < heartbeat || s.exit != nil || s.state == killed {
		return
	}
	s.unguarded = time.Time{}
	s.Warn("the guardian of CMD was killed: from now on nobody would end CMD if redlatch were killed too")
}

// result returns how the run ended. If the lease is over by now, CMD may have
// outlived it, with any exit code.
func (s *supervisor) result() Result {
	var r Result
	if cause := s.Lease.Err(); cause != nil && s.Plan.mode != Ignore && !s.unended {
		s.lose(cause)
	}
	if s.lost == nil && s.killedAt.IsZero() && s.exit.signal == syscall.SIGKILL && s.guardian.hasKilled() {
		s.lost = s.Lease.Lost(nil)
	}
	switch {
	case s.unended:
		r.End = Unended
	case s.lost != nil:
		r.End, r.Err = Lost, s.lost
	case s.exit.signal == syscall.SIGKILL && s.interrupts > 1:
		// The KILL was ours, for the second interrupt.
		r.Exit = Exit{CodeSignal + int(syscall.SIGINT), syscall.SIGINT}
	default:
		// A signal that ends a process ended us as it ended CMD. A CMD that
		// handles the signal and exits has an exit code, and that counts.
		r.Exit = s.exit.Exit
		r.Keyed = r.Exit.Signal != 0 && !slices.Contains(s.received, os.Signal(r.Exit.Signal)) && s.child.keyed(r.Exit.Signal)
	}
	return r
}
