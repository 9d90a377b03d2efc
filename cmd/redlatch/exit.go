package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/node/lockerrors"
)

// The exit codes that are not CMD's own. They follow sysexits.h and the shell
// where those have one; 79 is the first after sysexits.h.
const (
	exitUsage        = 64                      // the command line is wrong
	exitNoQuorum     = 69                      // too few nodes answered
	exitCannotCreate = 73                      // a file cannot be written
	exitHeld         = 75                      // another holds the lock, or the wait is over
	exitDenied       = 77                      // the servers refuse the password
	exitLost         = 79                      // the lock was lost while CMD ran
	exitCannotRun    = supervise.CodeCannotRun // CMD is there and cannot be run
	exitNotFound     = 127                     // CMD is not there
	exitSignal       = supervise.CodeSignal    // plus the number of the signal
)

// outcome is how a verb ended. It is an error so that it passes through cobra,
// also when the code is 0.
type outcome struct {
	code  int
	event string // what happened, in one word, for JSON
	err   error  // the message; nil for none
	hint  string // what to do about it

	// signal is the signal by which we die after the clean-up; 0 for none. The
	// code is what a shell makes of it.
	signal syscall.Signal
	// keyed says that a key of the terminal sent the signal, to CMD's process
	// group only, and that our group must get it too.
	keyed bool

	// What is known of the lock.
	name  string
	nodes []string
	run   *runFacts
	once  string // the occurrence; empty without --once
	ran   bool   // CMD was started
	cause string // why the lock was lost; empty if it was not
}

func (o *outcome) Error() string {
	if o.err == nil {
		return fmt.Sprintf("exit %d", o.code)
	}
	return o.err.Error()
}

func (o *outcome) Unwrap() error { return o.err }

// leave ends this process as the outcome says. Shells end a loop when a command
// died by the interrupt, and not when it exited with 130.
func (o *outcome) leave() {
	if o.signal != 0 {
		signals.DieBy(o.signal, o.keyed)
	}
	os.Exit(o.code)
}

// usageError is the outcome of a command line that is wrong.
func usageError(err error, hint string) *outcome {
	return &outcome{code: exitUsage, event: "usage", err: err, hint: hint}
}

// interruptedError says which signal ended the wait for a lock.
type interruptedError = signals.Error

// ended is the outcome of a verb that does not wait for a lock and that a signal
// ended; nil if none did.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil {
		return nil
	}
	return signalled(ctx, fmt.Errorf("ended by a signal: %w", cause))
}

// signalled is the outcome of a verb that a signal ended, with the message.
func signalled(ctx context.Context, message error) error {
	end := outcomeOf(context.Cause(ctx))
	end.err = message
	return end
}

// errUnchanged is the message of a verb that was ended before it changed anything.
var errUnchanged = errors.New("nothing was changed")

// unwritten is the outcome of a verb whose output could not be written; nil for
// no error.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("cannot write to stdout: %w", err)}
}

// outcomeOf turns an error into an outcome. An error that is not the library's
// is cobra's, and so about the command line.
func outcomeOf(err error) *outcome {
	var (
		already *outcome
		signal  *interruptedError
		bad     *redlatch.ConfigError
	)
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &signal):
		return &outcome{code: exitSignal + int(signal.Signal), signal: signal.Signal, event: "interrupted",
			err: fmt.Errorf("interrupted while waiting (%v)", signal)}
	case errors.Is(err, redlatch.ErrLost): // one of several locks, during the wait for another
		return lostOutcome(causeOf(err), err)
	case errors.Is(err, redlatch.ErrHeld):
		return &outcome{code: exitHeld, event: "held", err: err}
	case errors.As(err, &bad):
		if flag, ok := settingFlags[bad.Field]; ok {
			ours := *bad
			ours.Field = flag
			ours.Problem = strings.Replace(bad.Problem, bad.Field+" ", flag+" ", 1)
			err = &ours
		}
		hint := settingHints[bad.Field]
		if strings.HasPrefix(bad.Bound, "at least") { // the hints are for too much
			hint = ""
		}
		return usageError(err, hint)
	case errors.Is(err, redlatch.ErrQuarantine):
		return &outcome{code: exitNoQuorum, event: "quarantine", err: err}
	case errors.Is(err, admin.ErrNotFresh):
		return &outcome{code: exitUsage, event: "not_fresh", err: err, hint: "leave out --assume-fresh: init then waits until the nodes are trusted"}
	case errors.Is(err, redlatch.ErrNoQuorum):
		end := &outcome{code: exitNoQuorum, event: "no_quorum", err: err, hint: quorumHint(err)}
		if denied(err) {
			end.code, end.event = exitDenied, "denied"
		}
		return end
	}
	return usageError(err, "try redlatch --help")
}

// settingFlags are the flags that set what the library checks.
var settingFlags = map[string]string{
	"TTL": "--ttl", "MaxTTL": "--max-ttl", "MaxHold": "--max-hold", "Keep": "--keep", "Slots": "--slots", "occurrence": "--once",
	"Replicas": "--replicas", "NodeTimeout": "--node-timeout",
	"Label": "--label", "Membership": "--membership", "Guard": "--guard", "AnyMembership": "--any-membership",
	"Interval": "--interval", "Hosts": "--host", "AssumeFresh": "--assume-fresh",
}

// settingHints say what to do about a setting that the library refused.
var settingHints = map[string]string{
	"Slots":      "all that use a name must give the same --slots",
	"occurrence": onceHint,
	"Keep":       "to run a job once in a longer time, use redlatch run --once",
	"TTL":        hintTTL,
}

const hintTTL = "try without --ttl: the lock is kept for as long as CMD runs, whatever its TTL"

// message is an error on one line, without the prefix that the reporter adds.
func message(err error) string {
	return harmless(strings.Join(strings.Fields(lockerrors.Text(err)), " "))
}

// cannotRun is the outcome of a command that cannot be run. started says that
// the program was found, and that starting it failed.
func cannotRun(command string, err error, started bool) *outcome {
	if inner, ok := errors.AsType[*exec.Error](err); ok {
		err = inner.Err
	}
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err
	}
	end := &outcome{code: exitCannotRun, event: "cannot_run", err: fmt.Errorf("cannot run %q: %w", command, err)}
	isPath := strings.ContainsRune(command, filepath.Separator)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		end.code, end.event = exitNotFound, "not_found"
		switch {
		case strings.ContainsAny(command, " \t"):
			end.hint = fmt.Sprintf("try sh -c %q, if this is a line for the shell", command)
		case !isPath:
			end.hint = "install it, or give its path"
		case started:
			end.hint = "look at its first line: the interpreter that it names is not there"
		default:
			end.hint = "check the path"
		}
	case errors.Is(err, exec.ErrDot):
		end.code, end.event = exitNotFound, "not_found"
		end.hint = "try ./" + command
	case errors.Is(err, syscall.EISDIR):
		end.hint = "give a program in it"
	case errors.Is(err, os.ErrPermission):
		end.hint = "try chmod +x, if it is meant to be run"
	case errors.Is(err, syscall.ENOEXEC):
		end.hint = "give it a first line of #!/bin/sh, if it is a script"
	}
	return end
}
