package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func newRun(say *reporter) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME... -- CMD [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for the lock NAME, run CMD while holding it, and release it. With several
names CMD runs while all of these locks are held.

With --shared many readers hold the lock together. With --slots K up to K clients
do, each with a slot of its own in REDLATCH_SLOT. With --once OCCURRENCE the job
NAME runs once for each occurrence, such as a date, however many machines start it.

CMD gets REDLATCH_NAME, REDLATCH_TOKEN, REDLATCH_OWNER and REDLATCH_DEADLINE. Pass
the token to what CMD writes to, and let that refuse a lower one. CMD has a process
group of its own, which gets our signals, and which is ended before the lock
expires. Locks are not re-entrant: within CMD a run of the same name is refused.`,
		Example: `  # one at a time on this machine, with no server at all
  redlatch run nightly-report -- ./report.sh
  # every machine starts it: one runs it, and if it fails the next one does
  redlatch run -q --once "$(date -u +%F)" nightly -- ./report.sh
  # skip it if another machine is at it
  redlatch run --on-held skip sync -- ./sync.sh
  # wait for half a minute at most
  redlatch run -w 30s --nodes redis://a,redis://b,redis://c deploy/web -- make deploy`,
		Args: runArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ended(say, cmd, args, func(t *task) *outcome {
				end, _ := t.run()
				return end
			})
		},
	}
	flags := cmd.Flags()
	f.registerLock(flags, say, onHeldWait, onHeldFail, onHeldSkip)
	flags.StringVar(&f.occurrence, "once", "", "run CMD only if the `OCCURRENCE` of the job NAME, such as a date, is not completed; exit status 0 of CMD completes it")
	f.registerHold(flags)
	flags.IntVarP(&f.conflictCode, "conflict-exit-code", "E", exitHeld, "exit with `CODE` instead of 75")
	say.register(flags)
	return cmd
}

// task is CMD and the locks that it runs under.
type task struct {
	f        *runFlags
	say      *reporter
	names    []string
	argv     []string
	path     string // of CMD
	nodes    []redlatch.Node
	client   *redlatch.Client
	extends  *extensions
	received chan os.Signal
	metrics  *runMetrics // nil without --metrics
	warned   bool        // that nodes are quarantined
	held     bool        // the locks were acquired
}

// ended prepares the run of CMD, calls do, and returns the outcome.
func (f *runFlags) ended(say *reporter, cmd *cobra.Command, args []string, do func(t *task) *outcome) *outcome {
	dash := cmd.ArgsLenAtDash()
	t := &task{f: f, say: say, names: args[:dash], argv: args[dash:]}
	end := t.begin()
	if end == nil {
		end = do(t)
		t.close()
	}
	end.name, end.nodes, end.once = t.name(), f.opened, f.occurrence
	return end
}

// name is how the locks are named in messages.
func (t *task) name() string { return strings.Join(t.names, ", ") }

// begin prepares the run. If that fails, it writes the outcome into the file of metrics,
// and returns it.
func (t *task) begin() (end *outcome) {
	if t.metrics, end = t.f.openMetrics(t.names); end != nil {
		return end
	}
	if end = t.prepare(); end != nil {
		t.record(end)
	}
	return end
}

// prepare makes a client. It returns an outcome if that fails.
func (t *task) prepare() *outcome {
	f := t.f
	if err := cmp.Or(f.check(), f.checkWait(), f.checkShare(len(t.names)), f.checkOnce(len(t.names))); err != nil {
		return outcomeOf(err)
	}
	// This comes first: nobody should wait for a command that cannot be run.
	var err error
	if t.path, err = exec.LookPath(t.argv[0]); err != nil {
		return cannotRun(t.argv[0], err, false)
	}
	// Before a request is sent to a node: from then on there may be something to
	// clean up.
	t.received = make(chan os.Signal, 16)
	signals.Notify(t.received, supervise.Forwarded())
	// A reader of stderr that is gone must not end CMD. It is not ignored: CMD would
	// inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if t.nodes, err = f.open(); err != nil {
		return outcomeOf(err)
	}
	t.extends = &extensions{}
	opts := redlatch.Options{Label: f.labelFor(t.argv[0]), MaxHold: f.maxHold, Observer: t.extends, Logger: t.say.forLibrary()}
	if f.given("ttl") {
		// Otherwise the library chooses: the nodes may be marked for a shorter one.
		opts.TTL = f.ttl
	}
	f.apply(&opts)
	if t.client, err = redlatch.New(t.nodes, &opts); err != nil {
		return outcomeOf(err)
	}
	return nil
}

func (t *task) close() {
	// By now a late answer may have shown a node that lost its data.
	if t.client.Close(); t.held && !t.warned {
		t.say.reduced(t.name(), t.client)
	}
}

// run acquires the locks, runs CMD under them, and releases them. It reports
// also whether CMD has ended because a lock was lost.
func (t *task) run() (end *outcome, lost bool) {
	if end := t.unwritable(t.metrics.begin(t.nodes)); end != nil {
		return end, false
	}
	end, lost = t.attempt()
	t.record(end)
	return end, lost
}

// attempt is run without its metrics.
func (t *task) attempt() (end *outcome, lost bool) {
	f := t.f
	var locks *locks
	waited, err := f.await(context.Background(), t.say, t.names, t.nodes, &t.extends.places, func(ctx context.Context) (err error) {
		locks, err = t.acquire(ctx)
		return err
	})
	if err != nil {
		return f.refused(err, waited), false
	}
	t.held = true
	t.warned = t.say.reduced(t.name(), t.client) || t.warned
	acquired := time.Now()
	facts := &runFacts{leases: locks.all, waited: waited}
	cmd := &exec.Cmd{
		Path: t.path, Args: t.argv,
		Env:   append(append(os.Environ(), leaseVariables(facts.leases...)...), heldWith(locks.all)),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	t.say.holding(locks.all)
	defer t.say.holding(nil)
	t.say.event(slog.LevelInfo, "acquired", t.name(), "lock acquired", fields{}.add("waited", facts.waited))
	if end := t.unwritable(t.metrics.acquired(facts.waited)); end != nil {
		locks.free(errFailed)
		return end, false
	}
	grace := f.graceFor(facts.leases[0].TTL())
	held := &heldLock{task: t, locks: locks, acquired: acquired, grace: grace}
	held.tellContended()
	held.tellExtensions()
	result := supervise.Run(supervise.Config{
		Cmd: cmd, Lease: held, Plan: supervise.NewPlan(grace, f.onLost), Signals: t.received, Warn: held.warn, Note: held.note,
	})
	end = held.outcome(t.argv[0], result)
	held.release(end)
	facts.held = time.Since(acquired)
	end.ran = result.End != supervise.NotStarted && result.End != supervise.TooLate
	end.run = facts
	return end, result.End == supervise.Lost || result.End == supervise.TooLate
}

// leaseVariables describe the locks to CMD. They follow the inherited ones, so
// that in a nested run those of the inner lock are valid.
func leaseVariables(leases ...*redlatch.Lease) []string {
	var names, tokens []string
	deadline := leases[0].Deadline()
	for _, l := range leases {
		names, tokens = append(names, l.Name()), append(tokens, tokenText(l.Token()))
		if d := l.Deadline(); d.Before(deadline) {
			deadline = d
		}
	}
	variables := []string{
		"REDLATCH_NAME=" + strings.Join(names, "\n"), // which no name contains
		"REDLATCH_TOKEN=" + strings.Join(tokens, "\n"),
		"REDLATCH_OWNER=" + leases[0].Owner(),
		"REDLATCH_DEADLINE=" + deadline.UTC().Format(time.RFC3339Nano),
	}
	if partsOf(leases[0]).Slots > 0 { // then there is one lease
		return append(variables, slotVariable+"="+strconv.Itoa(leases[0].Slot()))
	}
	if os.Getenv(slotVariable) != "" {
		return append(variables, slotVariable+"=") // that of another lock
	}
	return variables
}

// acquire waits for the locks. A signal that ends a process ends the wait.
func (t *task) acquire(ctx context.Context) (*locks, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		locks *locks
		err   error
	}
	done := make(chan result, 1)
	go func() {
		locks, err := t.lock(ctx, t.f.options())
		done <- result{locks, err}
	}()
	for {
		select {
		case r := <-done:
			if r.err == nil && ctx.Err() != nil {
				// The signal came at the same moment as the lock.
				r.locks.free(errFailed)
				return nil, context.Cause(ctx)
			}
			return r.locks, r.err
		case s := <-t.received:
			if signals.Ends(s) {
				cancel(&interruptedError{Signal: s.(syscall.Signal)})
			}
		}
	}
}

// refused is the outcome of a lock that was not acquired.
func (f *runFlags) refused(err error, waited time.Duration) *outcome {
	end := outcomeOf(err)
	f.refuse(end, waited)
	if end.event == "held" {
		end.code = f.conflictCode
		if f.onHeld == onHeldSkip {
			end.code, end.hint = 0, ""
			end.err = fmt.Errorf("%w; CMD was skipped", end.err)
		}
	}
	return end
}
