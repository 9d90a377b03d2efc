package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/seconds"
)

// waitFlags limit the wait for a lock.
type waitFlags struct {
	noWait            bool
	wait              time.Duration
	quarantineWait    time.Duration
	waitSet           bool
	quarantineWaitSet bool
}

// registerWait adds the flags of the wait for a lock.
func (f *waitFlags) registerWait(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "ask once and do not wait: exit 75 if another client holds the lock, 69 if too few nodes answer")
	seconds.Var(flags, &f.wait, "wait", "w", 0, "wait for `DURATION` at most, for holders and for nodes that do not answer, then exit 75 or 69 (default: for holders without end, for nodes 2s)")
	seconds.Var(flags, &f.quarantineWait, "quarantine-wait", "", 0, "wait for `DURATION` at most until nodes leave quarantine, then exit 69; it does not count towards -w (default: one whole quarantine, 32s unless \"redlatch init\" changed it)")
}

// noteWait notes which limits are set, once the flags were parsed.
func (f *waitFlags) noteWait(flags *pflag.FlagSet) {
	f.waitSet, f.quarantineWaitSet = flags.Changed("wait"), flags.Changed("quarantine-wait")
}

// checkWait rejects limits that are out of range or contradict each other.
func (f *waitFlags) checkWait() error {
	switch {
	case f.noWait && f.waitSet:
		return usageError(errors.New("-n and -w cannot be combined"), "leave out one of them")
	case f.wait < 0:
		return &redlatch.ConfigError{Field: "--wait", Value: f.wait, Bound: "0s or longer"}
	case f.quarantineWait < 0:
		return &redlatch.ConfigError{Field: "--quarantine-wait", Value: f.quarantineWait, Bound: "0s or longer"}
	}
	return nil
}

// unlimited reports that the wait for a holder has no limit.
func (f *waitFlags) unlimited() bool { return !f.noWait && !f.waitSet }

// asksOnce reports that the nodes are asked once.
func (f *waitFlags) asksOnce() bool { return f.noWait || f.waitSet && f.wait == 0 }

// limit sets the limits of the wait.
func (f *waitFlags) limit(opts *redlatch.LockOptions) {
	opts.Wait = f.wait
	if f.asksOnce() {
		opts.Tries = 1
	}
	if f.quarantineWaitSet {
		if opts.QuarantineWait = f.quarantineWait; f.quarantineWait == 0 {
			opts.QuarantineWait = redlatch.NoQuarantineWait
		}
	}
}

// refuse completes the outcome of a lock that was not acquired after a wait: what
// to do depends on the limit that ended it.
func (f *waitFlags) refuse(end *outcome, waited time.Duration, share shareFlags) {
	var quorum *redlatch.QuorumError
	switch {
	case end.event == "held":
		held := end.err
		hint := "leave out -n to wait for it, or give -w 30s to limit the wait"
		if !f.asksOnce() {
			end.err = fmt.Errorf("%w, after a wait of %v", held, waited.Round(time.Millisecond))
			hint = "try a longer -w"
		}
		if !endless(held) { // otherwise the error says what to do, and waiting does not help
			end.hint = share.hint(held, hint)
		}
	case end.event == "quarantine" && errors.As(end.err, &quorum):
		if left, _ := quorum.QuarantineLeft(); left > 0 {
			end.hint = fmt.Sprintf("try again in %v, or give a longer --quarantine-wait", roundUp(left))
			if f.asksOnce() {
				end.hint = fmt.Sprintf("try again in %v, or leave out -n to wait", roundUp(left))
			}
		}
	}
}

// roundUp returns whole seconds: after that time the quarantine has ended.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
