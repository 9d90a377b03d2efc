package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
		Use:   "run [flags] NAME -- CMD [ARG...]",
		Short: "Run a command while holding a lock",
		Long: `Wait for the lock NAME, run CMD while holding it, and release it.

CMD runs in a process group of its own, with the same stdin, stdout and stderr,
and with REDLATCH_NAME, REDLATCH_TOKEN, REDLATCH_OWNER and REDLATCH_DEADLINE in
its environment. The token grows with every holder: pass it to the resource that
CMD writes to, and let that refuse a lower token than it has seen. The deadline
is that of the start; it moves while CMD runs. Locks are not re-entrant: inside
of CMD a run of the same name is refused; other names are not.

Signals are forwarded to CMD's whole group; a second interrupt kills it. When CMD
ends, what it left running in its group is ended too, and then the lock is
released. When the lock is being lost, because no majority of nodes could be
reached or because --max-hold is over, the group gets a TERM one --grace before
the deadline, and a KILL before the deadline.

Exit status: CMD's own, or
   64  the command line is wrong, or redlatch itself runs under the lock NAME
   69  too few nodes answered
   75  another holds the lock, or the wait is over (or CODE, with -E)
   79  the lock was lost while CMD ran
  126  CMD cannot be run        127  CMD is not found
128+N  CMD, or the wait for the lock, was ended by signal N; for INT, TERM, HUP
       and QUIT redlatch dies by the signal itself, which a shell shows as 128+N`,
		Example: `  # one at a time on this machine, with no server at all
  redlatch run nightly-report -- ./report.sh

  # a cron job on many machines: the first runs it, the others exit after a
  # second, even those whose clocks are up to a minute late
  redlatch run -w 1s -q --min-hold 1m --nodes redis://a:6379,redis://b:6379,redis://c:6379 backup -- ./backup.sh

  # wait for half a minute at most
  redlatch run -w 30s deploy/web -- make deploy

  # pass the token to the resource
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
	f.registerRun(flags)
	say.register(flags)
	return cmd
}

// run acquires the lock, runs CMD under it, and releases it.
func (f *runFlags) run(say *reporter, name string, argv []string) *outcome {
	if err := f.check(); err != nil {
		return outcomeOf(err)
	}
	// Before the lock is acquired: nobody should wait for a command that cannot
	// be run.
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return cannotRun(argv[0], err, false)
	}
	// Before a request is sent to a node: from then on there may be something to
	// clean up.
	received := make(chan os.Signal, 16)
	signals.Notify(received, supervise.Forwarded())
	nodes, err := f.open()
	if err != nil {
		return outcomeOf(err)
	}
	extends := &extensions{}
	opts := redlatch.Options{Label: f.labelFor(argv[0]), MaxHold: f.maxHold, Observer: extends}
	if f.ttlSet {
		// Otherwise the library chooses: the nodes may be marked for a shorter one.
		opts.TTL = f.ttl
	}
	f.apply(&opts)
	client, err := redlatch.New(nodes, opts)
	if err != nil {
		return outcomeOf(err)
	}
	var lease *redlatch.Lease
	warned := false
	defer func() {
		// By now a late answer may have shown a node that lost its data.
		if client.Close(); lease != nil && !warned {
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
	lease, err = f.acquire(client, name, received)
	show.stop()
	if err != nil {
		return f.refused(err, time.Since(asked))
	}
	warned = say.reduced(name, client)
	acquired := time.Now()
	facts := &runFacts{token: lease.Token(), owner: lease.Owner(), waited: acquired.Sub(asked)}
	cmd := &exec.Cmd{
		Path: path, Args: argv,
		Env:   append(append(os.Environ(), leaseVariables(lease)...), heldWith(lease)),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}
	grace := f.graceFor(lease.TTL())
	held := &heldLock{
		Lease: lease, acquired: acquired, maxHold: f.maxHold, minHold: f.minHold, grace: grace,
		onLost: f.onLost, extends: extends, say: say,
	}
	result := supervise.Run(supervise.Config{
		Cmd: cmd, Lease: held, Plan: supervise.NewPlan(grace, f.onLost), Signals: received, Warn: held.warn,
	})
	end, stayed := held.outcome(argv[0], result), stayNone
	if result.End == supervise.Exited && len(result.Signals) == 0 && !result.Keyed {
		stayed = held.stay(received)
	}
	held.release(end, stayed)
	if stayed == stayInterrupted && end.event == "exited" {
		*end = *outcomeOf(&interruptedError{Signal: syscall.SIGINT})
		end.err = fmt.Errorf("interrupt after CMD ended with %d, before the --min-hold of %v was over", result.Exit.Code, f.minHold)
	}
	facts.held = time.Since(acquired)
	end.run = facts
	return end
}

// leaseVariables describe the lock to CMD. They follow the inherited ones, so
// that in a nested run those of the inner lock are valid.
func leaseVariables(lease *redlatch.Lease) []string {
	return []string{
		"REDLATCH_NAME=" + lease.Name(),
		"REDLATCH_TOKEN=" + tokenText(lease.Token()),
		"REDLATCH_OWNER=" + lease.Owner(),
		"REDLATCH_DEADLINE=" + lease.Deadline().UTC().Format(time.RFC3339Nano),
	}
}

// acquire waits for the lock. A signal that ends a process ends the wait.
func (f *runFlags) acquire(client *redlatch.Client, name string, received <-chan os.Signal) (*redlatch.Lease, error) {
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
		case s := <-received:
			if signals.Ends(s) {
				cancel(&interruptedError{Signal: s.(syscall.Signal)})
			}
		}
	}
}

// refused is the outcome of a lock that was not acquired.
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
		end.hint = "" // the error says what to do; waiting does not help
	}
	return end
}
