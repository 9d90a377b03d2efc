package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/cmd/internal/signals"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

func newLock(say *reporter) *cobra.Command {
	f := &lockFlags{}
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME",
		Short: "Acquire a lock and print its handle",
		Long: `Wait for the lock NAME, and print its handle, with which "redlatch extend" and
"redlatch unlock" find it. The lock is not renewed automatically: it expires after
--ttl unless extended. If the work is one command, "redlatch run" is better.

Stdout gets lines for the shell's eval: REDLATCH_HANDLE, REDLATCH_NAME,
REDLATCH_TOKEN, REDLATCH_OWNER, REDLATCH_DEADLINE, and with --slots REDLATCH_SLOT.
Check the exit status before the eval, as below: an eval of nothing succeeds. The
handle is a secret: it can release the lock.`,
		Example: `  lease=$(redlatch lock -w 1m --ttl 20s nightly) || exit
  eval "$lease"
  trap 'redlatch unlock' EXIT`,
		Args:        nameArgs,
		Annotations: map[string]string{evaluated: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmp.Or(f.checkWait(), f.checkShare(1))
			if err == nil {
				err = f.run(cmd.OutOrStdout(), say, args[0])
			}
			return f.about(args[0], err)
		},
	}
	flags := cmd.Flags()
	f.registerLock(flags, say, onHeldWait, onHeldFail)
	flag.Duration(flags, &f.ttl, "ttl", "", 0, "the lock expires after `DURATION` unless extended (default 10s, or the longest that the nodes allow)")
	flags.StringVar(&f.label, "label", "", "a name for the holder, shown beside host and process id (default shell-PID, the calling process)")
	flags.BoolVarP(&say.quiet, "quiet", "q", false, "print errors only: nothing while waiting, nor when another client holds the lock")
	say.registerJSON(flags, "write JSON to stdout instead of lines for eval")
	return cmd
}

// about says in an outcome which lock it is about, and which nodes were asked.
func (f *nodeFlags) about(name string, err error) error {
	if err == nil {
		return nil
	}
	end := outcomeOf(err)
	end.name, end.nodes = name, f.opened
	return end
}

// exitOutput is the exit code of a verb whose output could not be written.
const exitOutput = 74

func (f *lockFlags) run(out io.Writer, say *reporter, name string) error {
	f.label = cmp.Or(f.label, fmt.Sprintf("shell-%d", os.Getppid()))
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

	var lease *redlatch.Lease
	waited, err := f.await(ctx, say, []string{name}, nodes, places, func(ctx context.Context) (err error) {
		opts := f.options()
		opts.TTL, opts.NoKeepAlive = f.ttl, true
		lease, err = client.Lock(ctx, name, &opts)
		return err
	})
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
	if end.hint == hintTTL {
		end.hint = "try a shorter --ttl; redlatch init --max-ttl sets the longest"
	}
	f.refuse(end, waited)
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
	if !say.json {
		return writeExports(out, variables)
	}
	event := "extended"
	if waited != nil {
		event = "locked"
	}
	line := fields{}.add("event", event).add("name", lease.Name()).add("handle", lease.Handle()).add("token", lease.Token())
	line = append(line, shareOf(lease)...).add("owner", lease.Owner()).
		add("deadline", lease.Deadline()).add("ttl", lease.TTL()).add("left", lease.Remaining())
	if waited != nil {
		line = line.add("waited", *waited)
	}
	return writeJSON(out, line.add("nodes", f.opened))
}

// writeExports writes variables as lines for a shell's eval.
func writeExports(out io.Writer, variables []string) error {
	var b []byte
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		b = fmt.Appendf(b, "export %s=%s\n", name, quote(value))
	}
	_, err := out.Write(b)
	return err
}

// handleVariable holds the handle for command lines that give none.
const handleVariable = "REDLATCH_HANDLE"

// maxHandle limits what is read from stdin: a handle contains a name and a key
// of 512 bytes each, and little else.
const maxHandle = 16 << 10

func newExtend(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "extend [flags] [HANDLE | -]",
		Short: "Extend a lock by its TTL",
		Long: `Extend the lock of a handle by its --ttl, and print the same lines as "redlatch
lock", with the new deadline. The handle is taken from REDLATCH_HANDLE, or with -
from stdin: ps shows an argument to other users.`,
		Example: `  lease=$(redlatch extend) || exit
  eval "$lease"`,
		Annotations: map[string]string{evaluated: ""},
	}
	f.registerHandle(cmd, say, func(ctx context.Context, client *redlatch.Client, handle string) error {
		lease, err := client.Attach(ctx, handle)
		if err != nil {
			return err
		}
		if err := f.writeLease(cmd.OutOrStdout(), say, lease, nil); err != nil {
			lease.Detach()
			return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("the lock is extended, but cannot write to stdout: %w", err)}
		}
		_, err = lease.Detach()
		return err
	})
	return cmd
}

func newUnlock(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "unlock [flags] [HANDLE | -]",
		Short: "Release the lock of a handle",
		Long: `Release the lock of a handle. The handle is taken from REDLATCH_HANDLE, or with -
from stdin: ps shows an argument to other users.`,
		Example: `  printf %s "$handle" | redlatch unlock -`,
	}
	f.registerHandle(cmd, say, func(ctx context.Context, client *redlatch.Client, handle string) error {
		if err := client.Release(ctx, handle); err != nil {
			return err
		}
		if say.json {
			return writeJSON(cmd.OutOrStdout(), fields{}.add("event", "released").with("nodes", f.opened))
		}
		return nil
	})
	return cmd
}

// registerHandle makes a verb of what is done with a handle.
func (f *nodeFlags) registerHandle(cmd *cobra.Command, say *reporter, do func(context.Context, *redlatch.Client, string) error) {
	cmd.Args = mostOneArg("handle", "try redlatch "+cmd.Name()+" --help")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.withHandle(cmd, args, do) }
	f.register(cmd.Flags(), nil) // where the lock is was reported when it was acquired
	say.registerJSON(cmd.Flags(), "write JSON to stdout")
}

// withHandle finds the handle and calls do with it and a client. Unlike a
// request for a lock, do can also fail because the lock is lost.
func (f *nodeFlags) withHandle(cmd *cobra.Command, args []string, do func(context.Context, *redlatch.Client, string) error) error {
	handle, err := findHandle(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	return f.about("", f.withClient(0, func(ctx context.Context, client *redlatch.Client) error {
		err := do(ctx, client, handle)
		var bad *redlatch.ConfigError
		switch {
		case err != nil && ctx.Err() != nil:
			return ended(ctx)
		case errors.Is(err, redlatch.ErrLost):
			end := lostOutcome(causeOf(err), fmt.Errorf("lock no longer held: %s", lostCause(err)))
			end.hint = lostHint(err)
			return end
		case errors.As(err, &bad) && bad.Field == "handle":
			return usageError(err, `use the value that "redlatch lock" put into REDLATCH_HANDLE`)
		}
		return err
	}))
}

// lostHint says why the lock of a handle may be gone. A node that granted it knows
// its token; but a release teaches it to all.
func lostHint(err error) string {
	var lost *redlatch.LostError
	var quorum *redlatch.QuorumError
	hint := "it expired, was broken or was unlocked before"
	if errors.As(err, &lost) && errors.As(err, &quorum) && quorum.Op == node.OpExtend &&
		slices.ContainsFunc(quorum.Nodes, func(r observe.Result) bool { return r.Err == nil && r.Reply.Fence >= lost.Token }) {
		return hint
	}
	return hint + "; if not, check that --nodes is the same as for lock"
}

// findHandle returns the handle from the argument, from stdin, or from the
// environment.
func findHandle(args []string, stdin io.Reader) (string, error) {
	const hint = `set REDLATCH_HANDLE with lease=$(redlatch lock NAME) || exit; eval "$lease", or pass - and the handle on stdin`
	handle := os.Getenv(handleVariable)
	if len(args) > 0 {
		handle = args[0]
	}
	if handle == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, maxHandle+1))
		if err != nil {
			return "", usageError(fmt.Errorf("cannot read the handle from stdin: %w", err), hint)
		}
		if len(text) > maxHandle {
			return "", usageError(fmt.Errorf("stdin holds more than %d bytes, which is no handle", maxHandle), hint)
		}
		handle = string(text)
	}
	if handle = strings.TrimSpace(handle); handle == "" {
		return "", usageError(errors.New("no handle given"), hint)
	}
	return handle, nil
}
