package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/node"
)

// lockFlags are the flags of lock.
type lockFlags struct {
	nodeFlags
	shareFlags
	noWait  bool
	wait    time.Duration
	waitSet bool
	ttl     time.Duration
	keep    time.Duration
	label   string
}

func newLock(say *reporter) *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME",
		Short: "Take a lock that outlives the command",
		Long: `Wait for the lock NAME, and print its handle, by which it can be released.

Nothing runs on: the lock is not kept alive. It lives for --ttl, and then it is
free, unless "redlatch extend" gives it its whole --ttl again before. Choose a
--ttl that outlasts the longest step between two extensions. Nodes under the
restart guard allow as much as they were marked for, 30s unless "redlatch init
--max-ttl" said otherwise. If the work is one command, "redlatch run" is
better: it keeps the lock, and ends the command when the lock is lost.

With --shared the lock is held together with other readers, and with --slots K
by K at most, as with "redlatch run". Extending and releasing it is the same.
With --keep the name stays taken until then, whether or not it is released.

Stdout gets lines for the shell's eval: REDLATCH_HANDLE, REDLATCH_NAME,
REDLATCH_TOKEN, REDLATCH_OWNER, REDLATCH_DEADLINE, and with --slots also
REDLATCH_SLOT. Check that there are any before the eval:
lease=$(redlatch lock NAME) || exit; eval "$lease". An eval of nothing succeeds,
so that eval "$(redlatch lock NAME)" || exit would go on without the lock if
redlatch was killed, or is not installed. Otherwise a lock that was not to be
had gets a line that makes the eval fail with the same exit status.

The handle can extend and release the lock: keep it from others as you would a
password. "redlatch extend" and "redlatch unlock" find it in the environment,
where other users do not see it; ps shows them a command line.

Exit status:
    0  the lock is taken
   64  the command line is wrong
   69  too few nodes answered
   74  the handle could not be written, and the lock was released again
   75  another holds the lock, or the wait is over
128+N  the waiting was ended by signal N, by which redlatch dies too`,
		Example: `  # a script that holds a lock over several steps
  lease=$(redlatch lock -w 1m --ttl 20s nightly) || exit
  eval "$lease"
  trap 'redlatch unlock' EXIT
  ./collect || exit
  lease=$(redlatch extend) || exit
  eval "$lease"
  ./publish --fence "$REDLATCH_TOKEN"

  # with jq
  lease=$(redlatch lock -n -o json nightly) || exit
  handle=$(printf %s "$lease" | jq -r .handle)`,
		Args:        nameArgs("lock"),
		Annotations: map[string]string{evaluated: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.waitSet = cmd.Flags().Changed("wait")
			f.slotsSet = cmd.Flags().Changed("slots")
			if err := f.checkShare(1); err != nil {
				return named(args[0], err)
			}
			return named(args[0], f.located(f.run(cmd.OutOrStdout(), say, args[0])))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	f.registerShare(flags)
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "ask once and do not wait: exit 75 if another holds the lock, 69 if too few nodes answer")
	flags.VarP(seconds{&f.wait}, "wait", "w", "wait for `DURATION` at the most, for holders and for nodes, then exit 75 or 69; a bare number is seconds (default: for holders without end, for nodes 2s)")
	flags.DurationVar(&f.ttl, "ttl", 0, "`DURATION` for which the lock lives unless it is extended (default 10s, or the longest that the nodes allow)")
	registerKeep(flags, &f.keep)
	flags.StringVar(&f.label, "label", "", "what others see as the holder, besides host and process id (default shell-PID, the process that called)")
	flags.BoolVarP(&say.quiet, "quiet", "q", false, "write nothing while waiting, nor when another holds the lock; errors are still written")
	say.registerOutput(flags, "what stdout gets: lines for eval, or one of JSON", "sh", "json")
	say.registerLog(flags)
	return cmd
}

// nameArgs accepts the name of one lock.
func nameArgs(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usageError(errors.New("the name of the lock is missing"), "try redlatch "+verb+" NAME")
		case len(args) > 1:
			if err := strayAddress(args); err != nil {
				return err
			}
			return usageError(fmt.Errorf("there are %d names: %s takes one lock", len(args), verb), "quote a name with spaces in it")
		}
		return nil
	}
}

// named says in an outcome which lock it is about.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	end := outcomeOf(err)
	end.name = name
	return end
}

// located says in an outcome which nodes were asked.
func (f *nodeFlags) located(err error) error {
	if err == nil {
		return nil
	}
	end := outcomeOf(err)
	end.nodes = f.opened
	return end
}

// exitOutput is the exit code of a verb whose output could not be written.
const exitOutput = 74

func (f *lockFlags) run(out io.Writer, say *reporter, name string) error {
	switch {
	case f.noWait && f.waitSet:
		return usageError(errors.New("-n and -w contradict each other"), "leave out one of them")
	case f.wait < 0:
		return &redlatch.ConfigError{Field: "--wait", Value: f.wait, Bound: "0s or longer"}
	}
	if f.label == "" {
		f.label = fmt.Sprintf("shell-%d", os.Getppid())
	}
	nodes, err := f.open()
	if err != nil {
		return err
	}
	places := &places{}
	client, err := f.clientOf(nodes, redlatch.Options{Label: f.label, Observer: places, Logger: say.forLibrary()})
	if err != nil {
		return err
	}
	defer client.Close()
	signal.Ignore(syscall.SIGPIPE) // a write to a closed stdout must return an error
	ctx, stop := untilSignal()
	defer stop()

	if !f.noWait && !f.waitSet {
		if err := f.nested(name); err != nil {
			return err
		}
	}
	asked := time.Now()
	opts := f.options()
	opts.TTL, opts.Wait, opts.Keep, opts.NoKeepAlive = f.ttl, f.wait, f.keep, true
	ask := client.Lock
	if f.noWait || f.waitSet && f.wait == 0 {
		ask = client.TryLock
	}
	show := say.showWaiting(name, nodes, places, f.shareFlags)
	lease, err := ask(ctx, name, opts)
	show.stop()
	waited := time.Since(asked)
	if err != nil {
		return f.refused(err, ctx, waited)
	}
	if ctx.Err() != nil { // the signal came at the same moment as the lock
		lease.Release(context.Background())
		return context.Cause(ctx)
	}
	// The lock is ours until the handle has been written.
	if err := f.writeLease(out, say, lease, &waited); err != nil {
		lease.Release(context.Background())
		return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("the handle could not be written, and the lock was released again: %w", err)}
	}
	if _, err := lease.Detach(); err != nil {
		return lostOutcome(causeStalled, fmt.Errorf("%q ran out before it could be used", name))
	}
	say.event(slog.LevelInfo, "acquired", name, "the lock is acquired", append(leaseAttrs([]*redlatch.Lease{lease}), slog.Duration("waited", waited))...)
	client.Close() // waits for answers that came late
	say.reduced(name, client)
	return nil
}

// refused is the outcome of a lock that was not acquired.
func (f *lockFlags) refused(err error, ctx context.Context, waited time.Duration) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	end := outcomeOf(err)
	var bad *redlatch.ConfigError
	switch {
	case errors.As(err, &bad) && bad.Field == "TTL":
		end.hint = "try a --ttl within that; under the restart guard the longest is what redlatch init --max-ttl set"
	case end.event == "held" && (f.noWait || f.wait == 0):
		end.hint = "leave out -n to wait for it, or give -w 30s to wait for a while"
	case end.event == "held":
		end.err = fmt.Errorf("%w, after a wait of %v", err, waited.Round(time.Millisecond))
		end.hint = "try a longer -w"
	}
	if end.event == "held" {
		end.hint = f.hint(err, end.hint)
	}
	if endless(err) {
		end.hint = "" // the error says what to do; waiting does not help
	}
	return end
}

// endless reports whether the lock is held by a key without expiry.
func endless(err error) bool {
	var held *redlatch.HeldError
	return errors.As(err, &held) && slices.ContainsFunc(held.Holders, func(h redlatch.Holder) bool {
		return h.Left == node.NoExpiry
	})
}

// untilSignal returns a context that ends with a signal that would end us. The
// cause says which.
func untilSignal() (context.Context, func()) {
	return signals.Context([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT})
}

// writeLease writes what a script must know of its lock. waited is nil for an
// extension.
func (f *nodeFlags) writeLease(out io.Writer, say *reporter, lease *redlatch.Lease, waited *time.Duration) error {
	variables := append([]string{"REDLATCH_HANDLE=" + lease.Handle()}, leaseVariables(lease)...)
	if say.format != "json" {
		return writeExports(out, variables)
	}
	line := struct {
		Event  string `json:"event"`
		Name   string `json:"name"`
		Handle string `json:"handle"`
		Token  string `json:"token"`
		shareJSON
		Owner    string   `json:"owner"`
		Deadline string   `json:"deadline"`
		TTL      *float64 `json:"ttl_ms"`
		Left     *float64 `json:"left_ms"`
		Waited   *float64 `json:"waited_ms,omitempty"`
		Nodes    []string `json:"nodes"`
	}{
		Event: "extended", Name: lease.Name(), Handle: lease.Handle(), Token: tokenText(lease.Token()), Owner: lease.Owner(), shareJSON: shareOf(lease),
		Deadline: lease.Deadline().UTC().Format(time.RFC3339Nano), TTL: ms(lease.TTL()), Left: ms(lease.Remaining()), Nodes: f.opened,
	}
	if waited != nil {
		line.Event, line.Waited = "locked", ms(*waited)
	}
	return writeJSON(out, line)
}

// writeExports writes variables as lines for a shell's eval.
func writeExports(out io.Writer, variables []string) error {
	var b []byte
	for _, v := range variables {
		for i := range v {
			if v[i] == '=' {
				b = fmt.Appendf(b, "export %s=%s\n", v[:i], quote(v[i+1:]))
				break
			}
		}
	}
	_, err := out.Write(b)
	return err
}
