package supervise

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// The exit codes that are made here, as a shell has them.
const (
	CodeCannotRun = 126 // CMD is there and cannot be run
	CodeSignal    = 128 // plus the number of the signal
)

// codeUsage is the exit code of a helper whose arguments are wrong.
const codeUsage = 64

// Lease is what CMD runs under. It ends at its deadline unless it is extended.
type Lease interface {
	// Remaining is the time until the deadline, 0 if the lease is over.
	Remaining() time.Duration
	// Context is done when the lease is over.
	Context() context.Context
	// Err says why the lease is over; nil while it is valid.
	Err() error
	// Extend tries to move the deadline. The owner extends the lease by itself;
	// Run calls this if the lease is low on time all the same.
	Extend(context.Context) error
	// Doomed reports that no extension can save the lease.
	Doomed() bool
	// Taken reports whether the cause, from Err, ended the lease before its
	// deadline.
	Taken(cause error) bool
	// Lost returns the error of a run that was ended because the lease is over,
	// with a cause from Err, or about to be over, with none. Run calls it once.
	Lost(cause error) error
	// Ignored is called when the lease is over and CMD runs on, with Ignore.
	Ignored()
}

// Config is what Run needs.
type Config struct {
	Cmd   *exec.Cmd
	Lease Lease
	Plan  Plan
	// Signals gets the signals for CMD: the caller has called signals.Notify
	// with Forwarded. Run adds those that stop a process.
	Signals chan os.Signal
	// Warn reports what the result does not show.
	Warn func(format string, args ...any)
	// Note, if set, is called with what happens to CMD, for a log.
	Note func(Note)
}

// What says what happened to CMD.
type What int

const (
	Started   What = iota // CMD runs
	Signalled             // its group was sent a signal
	Finished              // CMD has ended; others of its group may be left
)

// Note is something that happened to CMD.
type Note struct {
	What   What
	Pid    int            // of CMD
	Signal syscall.Signal // of Signalled
	Why    string         // of Signalled: the reason in a few words
	Exit   Exit           // of Finished
}

// End is how a run ended.
type End int

const (
	Exited     End = iota // CMD exited, and the lease is still valid
	NotStarted            // CMD cannot be run
	TooLate               // the lease was over before CMD could be started
	Lost                  // CMD was ended because of the lease, or outlived it
	Unended               // the lease is lost, and CMD does not end
)

// Result is how a run ended.
type Result struct {
	End  End
	Err  error // of NotStarted: why; of Lost: what Lease.Lost returned
	Exit Exit  // of Exited: how CMD ended
	// Keyed says that a key of the terminal sent Exit.Signal: to the group of CMD
	// alone, so that ours must still get it.
	Keyed bool
}

// Exit is how a command ended.
type Exit struct {
	Code int // its exit code; for a signal, what a shell makes of it
	// Signal ended it and is meant to end a process, so that we die by it as
	// well; 0 for none, and for those that are signs of a crash.
	Signal syscall.Signal
}
