package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/node"
)

// lockFlags are the flags of a request for a lock.
type lockFlags struct {
	nodeFlags
	shareFlags
	noWait bool // -n
	onHeld onHeld
	wait   time.Duration
	ttl    time.Duration
	keep   time.Duration
	label  string

	patient bool // nodes that never answered are waited for, too
}

// onHeld is what to do when another client holds the lock.
type onHeld string

const (
	onHeldWait onHeld = "wait" // for it
	onHeldFail onHeld = "fail" // with exit 75
	onHeldSkip onHeld = "skip" // CMD, with exit 0
)

// registerLock adds the flags that run and lock have in common. words are those of
// --on-held.
func (f *lockFlags) registerLock(flags *pflag.FlagSet, say *reporter, words ...onHeld) {
	f.register(flags, say)
	flags.BoolVar(&f.shared, "shared", false, "hold the lock together with others that give --shared, the readers, and never beside one that does not, a writer")
	flags.IntVar(&f.slots, "slots", 0, fmt.Sprintf("let `K` hold the lock at a time, from 1 to %d, each with a slot of its own in $%s; all must give the same number", node.MaxSlots, slotVariable))
	usage := "if another client holds the lock: wait for it; fail, exit 75 at once"
	if slices.Contains(words, onHeldSkip) {
		usage += "; or skip CMD, exit 0 at once"
	}
	flag.Word(flags, &f.onHeld, "on-held", usage+". With -w, after that time", words...)
	flags.BoolVarP(&f.noWait, "nonblock", "n", false, "flock's name for --on-held fail")
	flag.Duration(flags, &f.wait, "wait", "w", 0, "wait for `DURATION` at most, for holders and for nodes that do not answer, then exit 75 or 69 (default: without end, but 2s for nodes that never answered)")
	flag.Duration(flags, &f.keep, "keep", "", 0, "keep the name locked for `DURATION` after the acquisition, 30s at most, even after a release or a crash")
}

// runFlags are the flags of run and lead.
type runFlags struct {
	lockFlags
	occurrence   string // of --once
	maxHold      time.Duration
	grace        time.Duration
	onLost       supervise.OnLost
	conflictCode int
	metrics      string
}

// registerHold adds the flags of a lock that CMD runs under.
func (f *runFlags) registerHold(flags *pflag.FlagSet) {
	flag.Duration(flags, &f.ttl, "ttl", "", 10*time.Second, "the lock of a crashed holder expires after `DURATION`; a living one extends it")
	flag.Duration(flags, &f.maxHold, "max-hold", "", 24*time.Hour, "hold the lock for `DURATION` at most, then end CMD")
	flag.Duration(flags, &f.grace, "grace", "", 0, "`DURATION` before the deadline at which CMD gets a TERM when the lock is being lost (default a fifth of the TTL, 2s at most)")
	flag.Word(flags, &f.onLost, "on-lost", "what CMD gets when the lock is being lost: term, a TERM and then a KILL; kill, the KILL alone; or ignore, nothing", supervise.Term, supervise.Kill, supervise.Ignore)
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
	case f.given("ttl") && f.ttl <= 0:
		// For the library 0 is the default, which is not what --ttl 0 means.
		return &redlatch.ConfigError{Field: "--ttl", Value: f.ttl, Bound: "longer than 0s"}
	case f.maxHold <= 0:
		return &redlatch.ConfigError{Field: "--max-hold", Value: f.maxHold, Bound: "longer than 0s"}
	case f.conflictCode < 0 || f.conflictCode > 255:
		return &redlatch.ConfigError{Field: "--conflict-exit-code", Value: f.conflictCode, Bound: "between 0 and 255"}
	}
	// Half of the TTL at most: the first extension is tried after a third of it,
	// and there must be time for another one.
	if least, most := time.Millisecond, min(f.ttl, f.maxHold)/2; f.given("grace") && (f.grace < least || f.grace > most) {
		return &redlatch.ConfigError{Field: "--grace", Value: f.grace, Bound: fmt.Sprintf("between %v and %v, half of the TTL or of --max-hold", least, most)}
	}
	return nil
}

// graceFor returns the grace for a lock with the given time to live.
func (f *runFlags) graceFor(ttl time.Duration) time.Duration {
	span := min(ttl, f.maxHold)
	if f.given("grace") {
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

// checkWait rejects limits that are out of range or contradict each other.
func (f *lockFlags) checkWait() error {
	switch {
	case f.noWait && f.given("wait"):
		return usageError(errors.New("-n and -w cannot be combined"), "leave out one of them")
	case f.noWait && f.given("on-held") && f.onHeld != onHeldFail:
		return usageError(fmt.Errorf("-n and --on-held %s cannot be combined: -n is --on-held fail", f.onHeld), "leave out one of them")
	case f.wait < 0:
		return &redlatch.ConfigError{Field: "--wait", Value: f.wait, Bound: "0s or longer"}
	}
	return nil
}

// unlimited reports that the wait for a holder has no limit.
func (f *lockFlags) unlimited() bool { return !f.asksOnce() && !f.given("wait") }

// asksOnce reports that the nodes are asked once.
func (f *lockFlags) asksOnce() bool {
	if f.given("wait") {
		return f.wait == 0
	}
	return f.noWait || f.onHeld == onHeldFail || f.onHeld == onHeldSkip
}

// options returns the options of the lock.
func (f *lockFlags) options() redlatch.LockOptions {
	opts := redlatch.LockOptions{Shared: f.shared, Slots: f.slots, Keep: f.keep, Wait: f.wait}
	switch {
	case f.asksOnce():
		opts.Wait = redlatch.NoWait
	case f.unlimited():
		opts.Wait = 365 * 24 * time.Hour // the longest; await ends it if the nodes never answer
	}
	return opts
}

// await calls lock, which waits for the locks, and shows the wait. A wait without
// limit is refused for a lock that we run under, and ends if no quorum answers
// before one ever did.
func (f *lockFlags) await(ctx context.Context, say *reporter, names []string, nodes []redlatch.Node, places *places, lock func(context.Context) error) (waited time.Duration, err error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	if f.unlimited() {
		for _, name := range names {
			if err := nested(name, nodes, f.shared); err != nil {
				return 0, err
			}
		}
	}
	asked := time.Now()
	show := say.showWaiting(names[0], nodes, places, f.shareFlags)
	places.hopeless, places.giveUp, places.limited, places.patient = nil, giveUp, !f.unlimited(), f.patient
	places.tell = func(err error) {
		if show == nil || show.screen == nil { // it has a line already
			say.warn(places.last().name, "%v; waiting for them", err)
		}
	}
	err = lock(ctx)
	show.stop()
	if places.hopeless != nil && err != nil && !errors.Is(err, redlatch.ErrLost) {
		err = places.hopeless
	}
	return time.Since(asked), err
}

// refuse completes the outcome of a lock that was not acquired after a wait: what
// to do depends on the limit that ended it.
func (f *lockFlags) refuse(end *outcome, waited time.Duration) {
	var quorum *redlatch.QuorumError
	switch {
	case end.event == "held":
		held := end.err
		hint := "give -w 30s to wait for it"
		if f.noWait {
			hint = "give -w 30s instead of -n to wait for it"
		}
		if !f.asksOnce() {
			end.err = fmt.Errorf("%w, after a wait of %v", held, waited.Round(time.Millisecond))
			hint = "try a longer -w"
		}
		if !endless(held) { // otherwise the error says what to do, and waiting does not help
			end.hint = f.hint(held, hint)
		}
	case end.event == "quarantine" && errors.As(end.err, &quorum):
		if left := quorum.QuarantineLeft; left > 0 {
			end.hint = fmt.Sprintf("try again in %v", roundUp(left))
			if f.asksOnce() {
				end.hint += fmt.Sprintf(", or give -w %v to wait", roundUp(left)+10*time.Second)
			}
		}
	}
}

// roundUp returns whole seconds: after that time the quarantine has ended.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
