package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
)

// runFlags are the flags of run.
type runFlags struct {
	nodeFlags
	noWait       bool
	wait         time.Duration
	waitSet      bool
	ttl          time.Duration
	ttlSet       bool
	maxHold      time.Duration
	minHold      time.Duration
	grace        time.Duration
	graceSet     bool
	onLost       onLost
	conflictCode int
	label        string
}

func newRun(say *reporter) *cobra.Command {
	f := &runFlags{onLost: onLostTerm}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME -- CMD [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for the lock NAME, run CMD while holding it, and release it.

CMD runs in a process group of its own, with stdin, stdout and stderr as they
are, and finds REDLATCH_NAME, REDLATCH_TOKEN, REDLATCH_OWNER and
REDLATCH_DEADLINE in its environment. The token grows with every holder: hand
it to whatever CMD writes to, and have that refuse a lower one than it has seen.
Locks are not re-entrant: inside of CMD a run of the same name is refused, and
one of another name is not.
The deadline is the one at the start; it moves on for as long as CMD runs.

Signals go to CMD's whole group; a second interrupt kills it. When CMD ends,
what it left running in its group is ended too, and then the lock is released.
When the lock is being lost, because no majority of nodes could be reached or
because --max-hold is over, the group gets a TERM one --grace before the
deadline, and a KILL before the deadline.

Exit status: CMD's own, or
   64  the command line is wrong, or CMD itself is under the lock that it waits for
   69  too few nodes answered
   75  another holds the lock, or the wait is over (or CODE, with -E)
   79  the lock was lost while CMD ran
  126  CMD cannot be run        127  CMD is not found
128+N  CMD, or the waiting for the lock, was ended by signal N; for INT, TERM, HUP
       and QUIT redlatch dies by the signal itself, of which a shell makes 128+N`,
		Example: `  # one at a time on this machine, with no server at all
  redlatch run nightly-report -- ./report.sh

  # a cron job on many machines: the first runs it, the others leave after a
  # second, even those whose clocks are up to a minute late
  redlatch run -w 1s -q --min-hold 1m --nodes redis://a:6379,redis://b:6379,redis://c:6379 backup -- ./backup.sh

  # wait for half a minute at the most
  redlatch run -w 30s deploy/web -- make deploy

  # hand the token to the resource
  redlatch run import -- sh -c 'curl -fH "Fence: $REDLATCH_TOKEN" -T data.csv https://store/import'`,
		Args: runArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.waitSet = cmd.Flags().Changed("wait")
			f.graceSet = cmd.Flags().Changed("grace")
			f.ttlSet = cmd.Flags().Changed("ttl")
			end := f.run(say, args[0], args[1:])
			end.name, end.nodes = args[0], f.opened
			return end
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "ask once and do not wait: exit 75 if another holds the lock, 69 if too few nodes answer")
	flags.VarP(seconds{&f.wait}, "wait", "w", "wait for `DURATION` at the most, for holders and for nodes, then exit 75 or 69; a bare number is seconds (default: for holders without end, for nodes 2s)")
	flags.DurationVar(&f.ttl, "ttl", 10*time.Second, "`DURATION` after which the lock of a crashed holder is free; a living one extends it")
	flags.DurationVar(&f.maxHold, "max-hold", 24*time.Hour, "hold the lock for `DURATION` at the most: CMD is ended then")
	flags.DurationVar(&f.minHold, "min-hold", 0, "hold the lock for `DURATION` at the least, even if CMD ends before")
	flags.DurationVar(&f.grace, "grace", 0, "`DURATION` before the deadline at which CMD gets a TERM when the lock is being lost (default a fifth of the TTL, 2s at the most)")
	flags.Var(&f.onLost, "on-lost", "what becomes of CMD when the lock is being lost: term, and kill what does not heed it; kill without a word; or ignore")
	flags.IntVarP(&f.conflictCode, "conflict-exit-code", "E", exitHeld, "exit with `CODE` instead of 75")
	flags.StringVar(&f.label, "label", "", "what others see as the holder, besides host and process id (default the name of CMD)")
	say.register(flags)
	return cmd
}

// runArgs wants NAME -- CMD and says what is wrong otherwise.
func runArgs(cmd *cobra.Command, args []string) error {
	const form = "try redlatch run NAME -- CMD"
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0:
		return usageError(errors.New("the name of the lock and the command are missing"), form)
	case dash < 0:
		return usageError(errors.New("there is no -- before the command"), form)
	case dash == 0:
		return usageError(errors.New("there is no name before --"), form)
	case dash > 1:
		if err := strayAddress(args[:dash]); err != nil {
			return err
		}
		return usageError(fmt.Errorf("there are %d names before --: run takes one lock", dash), "try one redlatch run inside the other")
	case len(args) == 1:
		return usageError(errors.New("there is no command after --"), form)
	}
	return nil
}

// check refuses flags that are out of bounds or contradict each other, and
// fills in what follows from others. The bounds of the rest are the library's.
func (f *runFlags) check() error {
	switch {
	case f.noWait && f.waitSet:
		return usageError(errors.New("-n and -w contradict each other"), "leave out one of them")
	case f.ttlSet && f.ttl <= 0:
		// The library takes 0 for its default, which nobody means who writes it.
		return &redlatch.ConfigError{Field: "--ttl", Value: f.ttl, Bound: "longer than 0s"}
	case f.maxHold <= 0:
		return &redlatch.ConfigError{Field: "--max-hold", Value: f.maxHold, Bound: "longer than 0s"}
	case f.wait < 0:
		return &redlatch.ConfigError{Field: "--wait", Value: f.wait, Bound: "0s or longer"}
	case f.minHold < 0 || f.minHold > f.maxHold:
		return &redlatch.ConfigError{Field: "--min-hold", Value: f.minHold, Bound: fmt.Sprintf("from 0s to the %v of --max-hold", f.maxHold)}
	case f.conflictCode < 0 || f.conflictCode > 255:
		return &redlatch.ConfigError{Field: "--conflict-exit-code", Value: f.conflictCode, Bound: "from 0 to 255"}
	}
	// Half of the TTL at the most: the first extension is tried after a third
	// of it, and must have time to be tried again.
	if least, most := time.Millisecond, min(f.ttl, f.maxHold)/2; f.graceSet && (f.grace < least || f.grace > most) {
		return &redlatch.ConfigError{Field: "--grace", Value: f.grace, Bound: fmt.Sprintf("from %v to %v, half of the TTL or of --max-hold", least, most)}
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

// run does what the command is for.
func (f *runFlags) run(say *reporter, name string, argv []string) *outcome {
	if err := f.check(); err != nil {
		return outcomeOf(err)
	}
	// Before the lock is asked for: nobody should wait for a command that
	// cannot be run.
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return cannotRun(argv[0], err, false)
	}
	// Before anything is asked of a node: from then on there may be something
	// to take back.
	signals := make(chan os.Signal, 16)
	notify(signals, forwarded())
	nodes, err := f.open()
	if err != nil {
		return outcomeOf(err)
	}
	extends := &extensions{}
	opts := redlatch.Options{Label: f.labelFor(argv[0]), MaxHold: f.maxHold, Observer: extends}
	if f.ttlSet {
		// Otherwise the library's: the nodes may be marked for a shorter one.
		opts.TTL = f.ttl
	}
	f.apply(&opts)
	client, err := redlatch.New(nodes, opts)
	if err != nil {
		return outcomeOf(err)
	}
	var lease *redlatch.Lease
	told := false
	defer func() {
		// An answer that was not waited for may have come by now, and a node
		// that lost its data may have been marked.
		if client.Close(); lease != nil && !told {
			say.reduced(name, client)
		}
	}()

	if !f.noWait && !f.waitSet {
		if err := nested(name, nodes); err != nil {
			return outcomeOf(err)
		}
	}
	asked := time.Now()
	show := say.showWaiting(name, nodes, &extends.places)
	lease, err = f.acquire(client, name, signals)
	show.stop()
	if err != nil {
		return f.refused(err, time.Since(asked))
	}
	told = say.reduced(name, client)
	acquired := time.Now()
	facts := &runFacts{token: lease.Token(), owner: lease.Owner(), waited: acquired.Sub(asked)}
	cmd := &exec.Cmd{
		Path: path, Args: argv,
		Env:   append(append(os.Environ(), leaseVariables(lease)...), heldWith(lease)),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	h := &hold{
		name: name, lease: lease, acquired: acquired, maxHold: f.maxHold, extends: extends,
		plan: newPlan(f.graceFor(lease.TTL()), f.onLost), say: say, signals: signals,
	}
	end, stayed := h.run(cmd), false
	interrupted := false
	if end.event == "exited" && len(h.received) == 0 && !end.keyed {
		stayed, interrupted = f.stay(lease, acquired, signals)
	}
	f.release(lease, end, stayed, say, name)
	if interrupted && end.event == "exited" {
		*end = *outcomeOf(&interruptedError{syscall.SIGINT})
		end.err = fmt.Errorf("interrupt after CMD ended with %d, before the --min-hold of %v was over", h.ended.code, f.minHold)
	}
	facts.held = time.Since(acquired)
	end.run = facts
	return end
}

// maxLabel is how many bytes Options.Label may have.
const maxLabel = 64

// labelFor is what the lock's owner is called: the name of CMD tells more than
// ours.
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

// leaseVariables tell CMD about its lock. They come after what we inherited,
// so that in a run within a run the inner one's count.
func leaseVariables(lease *redlatch.Lease) []string {
	return []string{
		"REDLATCH_NAME=" + lease.Name(),
		"REDLATCH_TOKEN=" + tokenText(lease.Token()),
		"REDLATCH_OWNER=" + lease.Owner(),
		"REDLATCH_DEADLINE=" + lease.Deadline().UTC().Format(time.RFC3339Nano),
	}
}

// acquire waits for the lock until a signal that would end a process ends the
// waiting.
func (f *runFlags) acquire(client *redlatch.Client, name string, signals <-chan os.Signal) (*redlatch.Lease, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	type result struct {
		lease *redlatch.Lease
		err   error
	}
	done := make(chan result, 1)
	go func() {
		opts := redlatch.LockOptions{Wait: f.wait}
		ask := client.Lock
		if f.noWait || f.waitSet && f.wait == 0 {
			ask = client.TryLock
		}
		lease, err := ask(ctx, name, opts)
		done <- result{lease, err}
	}()
	for {
		select {
		case r := <-done:
			if r.err == nil && ctx.Err() != nil {
				// The signal came at the same moment as the lock.
				r.lease.Release(context.Background())
				return nil, context.Cause(ctx)
			}
			return r.lease, r.err
		case s := <-signals:
			if ends(s) {
				cancel(&interruptedError{s.(syscall.Signal)})
			}
		}
	}
}

// refused is the outcome of asking for a lock in vain.
func (f *runFlags) refused(err error, waited time.Duration) *outcome {
	end := outcomeOf(err)
	if end.event != "held" {
		return end
	}
	end.code = f.conflictCode
	if f.noWait || f.wait == 0 {
		end.hint = "leave out -n to wait for it, or give -w 30s to wait for a while"
	} else {
		end.err = fmt.Errorf("%w, after a wait of %v", err, waited.Round(time.Millisecond))
		end.hint = "try a longer -w"
	}
	if endless(err) {
		end.hint = "" // the error says what to do, and waiting is not it
	}
	return end
}

// stay keeps the lock until its --min-hold is over, or a signal or a loss
// comes first. An interrupt is from somebody who wants all of this to end, and
// not only the staying.
func (f *runFlags) stay(lease *redlatch.Lease, acquired time.Time, signals <-chan os.Signal) (stayed, interrupted bool) {
	left := f.minHold - time.Since(acquired)
	if left <= 0 {
		return false, false
	}
	over := time.NewTimer(left)
	defer over.Stop()
	for {
		select {
		case <-over.C:
			return true, false
		case <-lease.Context().Done():
			return true, false
		case s := <-signals:
			if ends(s) {
				return true, s == os.Interrupt
			}
		}
	}
}

// release frees the lock, unless it was lost. If the nodes only now say that
// it had been, CMD may have run beside another, and that is the outcome.
func (f *runFlags) release(lease *redlatch.Lease, end *outcome, stayed bool, say *reporter, name string) {
	err := lease.Release(context.Background())
	switch {
	case err == nil:
	case end.event == "lost":
		// That it could not be released either is no news.
	case !errors.Is(err, redlatch.ErrLost):
		say.warn(name, "%q could not be released and runs out within %v: %s", name, lease.TTL(), message(err))
	case stayed:
		say.warn(name, "%q was lost before its --min-hold of %v was over: %s", name, f.minHold, lostCause(err))
	case end.event == "exited" && f.onLost != onLostIgnore:
		*end = *lostOutcome(fmt.Errorf("%q was lost before CMD ended: %s", name, lostCause(err)))
	}
}

// cannotRun is the outcome of a command that cannot be started. started says that
// it was tried, since nothing spoke against it.
func cannotRun(command string, err error, started bool) *outcome {
	var inner *exec.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	var path *os.PathError
	if errors.As(err, &path) {
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

// notify has the signals delivered, but for those that whoever started us had
// us ignore: nohup must hold for CMD too.
func notify(to chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}
