package main

import (
	"cmp"
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
	"github.com/redlatch/redlatch/cmd/internal/seconds"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/node"
)

// lockFlags are the flags of lock.
type lockFlags struct {
	nodeFlags
	shareFlags
	waitFlags
	ttl   time.Duration
	keep  time.Duration
	label string
}

func newLock(say *reporter) *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME",
		Short: "Acquire a lock and print its handle",
		Long: `Wait for the lock NAME, and print its handle, which extends and releases it.

The lock is not renewed automatically. It expires after --ttl, unless "redlatch
extend" extends it. Choose a --ttl that is longer than the longest step between
two extensions. Nodes under the restart guard allow a --ttl up to their
--max-ttl, 30s unless "redlatch init" set another. If the work is one command,
"redlatch run" is better: it keeps the lock, and ends the command when the lock
is lost.

With --shared the lock is held together with other readers, and with --slots K
by K at most, as with "redlatch run". Extending and releasing it is the same.
With --keep the name stays taken until then, whether or not it is released.

Stdout gets lines for the shell's eval: REDLATCH_HANDLE, REDLATCH_NAME,
REDLATCH_TOKEN, REDLATCH_OWNER, REDLATCH_DEADLINE, and with --slots also
REDLATCH_SLOT. Check that there are any before the eval:
lease=$(redlatch lock NAME) || exit; eval "$lease". An eval of nothing succeeds,
so that eval "$(redlatch lock NAME)" || exit would go on without the lock if
redlatch was killed, or is not installed. If the lock is not acquired, stdout gets
a line that makes the eval fail with the same exit status.

The handle can extend and release the lock: keep it from others as you would a
password. "redlatch extend" and "redlatch unlock" find it in the environment,
where other users do not see it; ps shows them a command line.

Exit status:
    0  lock acquired
   64  the command line is wrong
   69  too few nodes answered
   74  the handle could not be written; the lock was released
   75  another client holds the lock, or the wait timed out
128+N  signal N ended the wait, and redlatch dies by it too`,
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
			f.noteWait(cmd.Flags())
			f.slotsSet = cmd.Flags().Changed("slots")
			if err := cmp.Or(f.checkWait(), f.checkShare(1)); err != nil {
				return named(args[0], err)
			}
			return named(args[0], f.located(f.run(cmd.OutOrStdout(), say, args[0])))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	f.registerShare(flags)
	f.registerWait(flags)
	seconds.Var(flags, &f.ttl, "ttl", "", 0, "the lock expires after `DURATION` unless extended (default 10s, or the longest that the nodes allow)")
	registerKeep(flags, &f.keep)
	flags.StringVar(&f.label, "label", "", "a name for the holder, shown beside host and process id (default shell-PID, the calling process)")
	flags.BoolVarP(&say.quiet, "quiet", "q", false, "print errors only: nothing while waiting, nor when another client holds the lock")
	say.registerOutput(flags, "output: lines for eval, or a line of JSON", "sh", "json")
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

	if f.unlimited() {
		if err := f.nested(name); err != nil {
			return err
		}
	}
	asked := time.Now()
	opts := f.options()
	opts.TTL, opts.Keep, opts.NoKeepAlive = f.ttl, f.keep, true
	f.limit(&opts)
	show := say.showWaiting(name, nodes, places, f.shareFlags)
	lease, err := client.Lock(ctx, name, &opts)
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
		return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("cannot write the handle; the lock was released: %w", err)}
	}
	if _, err := lease.Detach(); err != nil {
		return lostOutcome(causeStalled, fmt.Errorf("%q expired before it could be used", name))
	}
	say.event(slog.LevelInfo, "acquired", name, "lock acquired", append(leaseAttrs([]*redlatch.Lease{lease}), slog.Duration("waited", waited))...)
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
	if errors.As(err, &bad) && bad.Field == "TTL" {
		end.hint = "try a shorter --ttl; redlatch init --max-ttl sets the longest"
	}
	f.refuse(end, waited, f.shareFlags)
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
