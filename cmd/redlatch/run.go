package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
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
	f := &runFlags{onLost: supervise.Term}
	cmd := &cobra.Command{
		Use:   "run [flags] NAME... -- CMD [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for the lock NAME, run CMD while holding it, and release it.

With several names CMD runs while all of these locks are held. They are acquired
in the order of their names, so runs that list the same names in any order do
not wait for each other in a circle. The loss of one ends CMD. In its
environment the names and tokens are then in that order, one on each line.

With --shared CMD is a reader: readers run together, and never beside a run
without --shared, a writer. A writer that waits is served before readers that
come later. With --slots K at most K run at a time, each with a slot of its own
from 0 to K-1 in REDLATCH_SLOT. A run without --slots waits for all slots.

With --once OCCURRENCE the job NAME runs once for each occurrence, such as the
date of a nightly job, however many machines start it, and whenever. An
occurrence is completed when CMD exits with 0. The others wait for that, and exit
with 0 without running CMD. If CMD fails, or the lock is lost, the next one runs
it. So CMD runs at least once: it may run again if redlatch crashes between the
end of CMD and its record, or if most nodes lose their data. Nodes forget an
occurrence after 7 days. All must give the same text: use one time zone.

With --keep DURATION the name stays taken until then, counted from the
acquisition, also if CMD ends earlier or redlatch crashes. run ends with CMD.

CMD runs in a process group of its own, with the same stdin, stdout and stderr,
and with REDLATCH_NAME, REDLATCH_TOKEN, REDLATCH_OWNER and REDLATCH_DEADLINE in
its environment. The token grows with every holder: pass it to the resource that
CMD writes to, and let that refuse a lower token than it has seen. The deadline
is that of the start; it moves while CMD runs. Locks are not re-entrant: inside
of CMD a run of the same name is refused; other names are not.

Signals are forwarded to CMD's whole group; a second interrupt kills it. When
CMD ends, what it left running in its group is ended too, and then the lock is
released. When the lock is being lost, because no majority of nodes could be
reached or because --max-hold is over, the group gets a TERM one --grace before
the deadline, and a KILL before the deadline.

With --metrics FILE the run writes metrics for the textfile collector of
node_exporter, when it begins to wait, when CMD starts, and at the end: how long
it waited and held the lock, its exit status and outcome, when CMD last
succeeded here, and which nodes answered. Give every NAME a file of its own on a
machine. With --log-format json stderr is a log: a line of JSON for each event,
from the wait to the release, and nothing else of redlatch.

Exit status: CMD's own; 0 if an occurrence is already completed; or
   64  the command line is wrong, or redlatch itself runs under the lock NAME
   69  too few nodes answered
   73  the file of --metrics cannot be written, and CMD did not run
   75  another client holds the lock, or the wait timed out (or CODE, with -E)
   79  the lock was lost while CMD ran
       (or CMD succeeded, and with --once that could not be recorded)
  126  CMD cannot be run        127  CMD is not found
128+N  CMD, or the wait for the lock, was ended by signal N; for INT, TERM, HUP
       and QUIT redlatch dies by the signal itself, which a shell shows as 128+N`,
		Example: `  # one at a time on this machine, with no server at all
  redlatch run nightly-report -- ./report.sh

  # a nightly job that every machine starts: one runs it, and if it fails the
  # next one does
  redlatch run -q --once "$(date -u +%F)" nightly -- ./report.sh

  # a cron job on many machines: the first runs it, the others exit after a
  # second, even those whose clocks are up to half a minute late
  redlatch run -w 1s -q --keep 30s --nodes redis://a:6379,redis://b:6379,redis://c:6379 backup -- ./backup.sh

  # what happened goes to the journal as JSON, and to Prometheus
  redlatch run --log-format json --metrics /var/lib/prometheus/node-exporter/backup.prom backup -- ./backup.sh

  # wait for half a minute at most
  redlatch run -w 30s deploy/web -- make deploy

  # many copy the backups at a time, and none while a new one is written
  redlatch run --shared backups -- rsync -a /backups/ mirror:/backups/
  redlatch run backups -- ./backup.sh /backups

  # at most 3 at a time, though all are started at once
  for f in *.mov; do
    redlatch run --slots 3 transcode -- ./transcode.sh "$f" &
  done
  wait

  # two locks, both or none
  redlatch run db/orders db/stock -- ./move.sh

  # pass the token to the resource
  redlatch run import -- sh -c 'curl -fH "Fence: $REDLATCH_TOKEN" -T data.csv https://store/import'`,
		Args: runArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ended(say, cmd, args, func(t *task) *outcome {
				end, _ := t.run()
				return end
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.registerRun(flags)
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
	f.logsTwice = cmd.Flags().Changed("output") && say.format == "json" && say.logs()
	f.noteWait(cmd.Flags())
	f.graceSet = cmd.Flags().Changed("grace")
	f.ttlSet = cmd.Flags().Changed("ttl")
	f.slotsSet = cmd.Flags().Changed("slots")
	f.onceSet = cmd.Flags().Changed("once")
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

// begin prepares the run, and has the file of metrics say why that failed. It
// returns the outcome then.
func (t *task) begin() (end *outcome) {
	if t.f.logsTwice {
		return usageError(errors.New("-o json and --log-format json cannot be combined: both are forms of stderr"), "leave out one of them")
	}
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
	if err := cmp.Or(f.check(), f.checkWait(), f.checkShare(len(t.names)), f.checkOnce(len(t.names), f.shareFlags)); err != nil {
		return outcomeOf(err)
	}
	// Before the lock is acquired: nobody should wait for a command that cannot
	// be run.
	var err error
	if t.path, err = exec.LookPath(t.argv[0]); err != nil {
		return cannotRun(t.argv[0], err, false)
	}
	// Before a request is sent to a node: from then on there may be something to
	// clean up.
	t.received = make(chan os.Signal, 16)
	signals.Notify(t.received, supervise.Forwarded())
	if t.nodes, err = f.open(); err != nil {
		return outcomeOf(err)
	}
	t.extends = &extensions{}
	opts := redlatch.Options{Label: f.labelFor(t.argv[0]), MaxHold: f.maxHold, Observer: t.extends, Logger: t.say.forLibrary()}
	if f.ttlSet {
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
func (t *task) run() (end *outcome, lost bool) { return t.recorded(t.attempt) }

// attempt is run without its metrics.
func (t *task) attempt() (end *outcome, lost bool) {
	f := t.f
	if f.unlimited() {
		for _, name := range t.names {
			if err := nested(name, t.nodes); err != nil {
				return outcomeOf(err), false
			}
		}
	}
	asked := time.Now()
	show := t.say.showWaiting(t.names[0], t.nodes, &t.extends.places, f.shareFlags)
	locks, err := t.acquire()
	show.stop()
	if err != nil {
		return f.refused(err, time.Since(asked)), false
	}
	t.held = true
	t.warned = t.say.reduced(t.name(), t.client) || t.warned
	acquired := time.Now()
	facts := &runFacts{leases: locks.all, waited: acquired.Sub(asked)}
	cmd := &exec.Cmd{
		Path: t.path, Args: t.argv,
		Env:   append(append(os.Environ(), leaseVariables(facts.leases...)...), heldWith(locks.all)),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	t.say.holding(locks.all)
	defer t.say.holding(nil)
	t.say.event(slog.LevelInfo, "acquired", t.name(), "lock acquired", slog.Duration("waited", facts.waited))
	if err := t.metrics.acquired(facts.waited); err != nil {
		if end := t.unwritable(err); end != nil {
			locks.free(errFailed)
			return end, false
		}
	}
	grace := f.graceFor(facts.leases[0].TTL())
	held := &heldLock{
		locks: locks, once: f.onceFlag, name: t.name(), acquired: acquired, maxHold: f.maxHold, keep: f.keep, grace: grace,
		onLost: f.onLost, extends: t.extends, say: t.say,
	}
	held.logWanted()
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
func (t *task) acquire() (*locks, error) {
	f := t.f
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	type result struct {
		locks *locks
		err   error
	}
	done := make(chan result, 1)
	go func() {
		opts := f.options()
		opts.Keep = f.keep
		f.limit(&opts)
		locks, err := t.lock(ctx, opts)
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
	if end.event == "held" {
		end.code = f.conflictCode
	}
	f.refuse(end, waited, f.shareFlags)
	return end
}
