package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

// runFlags are the flags of run.
type runFlags struct {
	nodeFlags
	shareFlags
	onceFlag
	waitFlags
	ttl          time.Duration
	ttlSet       bool
	maxHold      time.Duration
	keep         time.Duration
	grace        time.Duration
	graceSet     bool
	onLost       supervise.OnLost
	conflictCode int
	label        string
	metrics      string
	logsTwice    bool // -o json and --log-format json
}

// registerRun adds the flags of run.
func (f *runFlags) registerRun(flags *pflag.FlagSet, say *reporter) {
	f.register(flags, say)
	f.registerShare(flags)
	flags.StringVar(&f.occurrence, "once", "", "run CMD only if the `OCCURRENCE` of the job NAME, such as a date, is not completed; exit status 0 of CMD completes it")
	f.registerWait(flags)
	f.registerHold(flags)
	registerKeep(flags, &f.keep)
	flags.IntVarP(&f.conflictCode, "conflict-exit-code", "E", exitHeld, "exit with `CODE` instead of 75")
}

// registerKeep adds the flag of a lock that stays taken.
func registerKeep(flags *pflag.FlagSet, keep *time.Duration) {
	flag.Duration(flags, keep, "keep", "", 0, "keep the name locked for `DURATION` after the acquisition, 30s at most, even after a release or a crash")
}

// registerHold adds the flags of a lock that CMD runs under.
func (f *runFlags) registerHold(flags *pflag.FlagSet) {
	flag.Duration(flags, &f.ttl, "ttl", "", 10*time.Second, "the lock of a crashed holder expires after `DURATION`; a living one extends it")
	flag.Duration(flags, &f.maxHold, "max-hold", "", 24*time.Hour, "hold the lock for `DURATION` at most, then end CMD")
	flag.Duration(flags, &f.grace, "grace", "", 0, "`DURATION` before the deadline at which CMD gets a TERM when the lock is being lost (default a fifth of the TTL, 2s at most)")
	flag.Word(flags, &f.onLost, "on-lost", "", "what CMD gets when the lock is being lost: term, a TERM and then a KILL; kill, the KILL alone; or ignore, nothing", supervise.Term, supervise.Kill, supervise.Ignore)
	flags.StringVar(&f.label, "label", "", "a name for the holder, shown beside host and process id (default the name of CMD)")
	flags.StringVar(&f.metrics, "metrics", "", "write metrics of the run to `FILE`, for the textfile collector of node_exporter: a name that ends in .prom, in its folder")
}

// runArgs checks that the arguments are NAME... -- CMD.
func runArgs(cmd *cobra.Command, args []string) error {
	form := "try redlatch " + cmd.Name() + " NAME -- CMD"
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0:
		return usageError(errors.New("the name of the lock and the command are missing"), form)
	case dash < 0:
		return usageError(errors.New("there is no -- before the command"), form)
	case dash == 0:
		return usageError(errors.New("there is no name before --"), form)
	case len(args) == dash:
		return usageError(errors.New("there is no command after --"), form)
	case dash > 1:
		return strayAddress(args[:dash])
	}
	return nil
}

// check rejects flags that are out of range or contradict each other. The
// library checks the others.
func (f *runFlags) check() error {
	switch {
	case f.ttlSet && f.ttl <= 0:
		// For the library 0 is the default, which is not what --ttl 0 means.
		return &redlatch.ConfigError{Field: "--ttl", Value: f.ttl, Bound: "longer than 0s"}
	case f.maxHold <= 0:
		return &redlatch.ConfigError{Field: "--max-hold", Value: f.maxHold, Bound: "longer than 0s"}
	case f.conflictCode < 0 || f.conflictCode > 255:
		return &redlatch.ConfigError{Field: "--conflict-exit-code", Value: f.conflictCode, Bound: "between 0 and 255"}
	}
	// Half of the TTL at most: the first extension is tried after a third of it,
	// and there must be time for another one.
	if least, most := time.Millisecond, min(f.ttl, f.maxHold)/2; f.graceSet && (f.grace < least || f.grace > most) {
		return &redlatch.ConfigError{Field: "--grace", Value: f.grace, Bound: fmt.Sprintf("between %v and %v, half of the TTL or of --max-hold", least, most)}
	}
	return nil
}

// graceFor returns the grace for a lock with the given time to live.
func (f *runFlags) graceFor(ttl time.Duration) time.Duration {
	span := min(ttl, f.maxHold)
	if f.graceSet {
		return min(f.grace, span/2)
	}
	return min(span/5, 2*time.Second)
}

// maxLabel is how many bytes Options.Label may have.
const maxLabel = 64

// labelFor returns the label of the lock's owner: by default the name of CMD,
// which says more than ours.
func (f *runFlags) labelFor(command string) string {
	if f.label != "" {
		return f.label
	}
	label := filepath.Base(command)
	if len(label) > maxLabel || !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
		return ""
	}
	return label
}

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
	flag.Duration(flags, &f.wait, "wait", "w", 0, "wait for `DURATION` at most, for holders and for nodes that do not answer, then exit 75 or 69 (default: for holders without end, for nodes 2s)")
	flag.Duration(flags, &f.quarantineWait, "quarantine-wait", "", 0, "wait for `DURATION` at most until nodes leave quarantine, then exit 69; it does not count towards -w (default: one whole quarantine, 32s unless \"redlatch init\" changed it)")
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
		if left := quorum.QuarantineLeft; left > 0 {
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
