package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
)

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
from stdin: ps shows an argument to other users.

Exit status: 0, or 64 for a wrong command line or handle, 69 too few nodes
answered, 79 the lock is no longer held.`,
		Example: `  lease=$(redlatch extend) || exit
  eval "$lease"`,
		Args:        handleArgs,
		Annotations: map[string]string{evaluated: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withHandle(cmd, args, func(ctx context.Context, client *redlatch.Client, handle string) error {
				lease, err := client.Attach(ctx, handle)
				if err != nil {
					return err
				}
				if err := f.writeLease(cmd.OutOrStdout(), say, lease, nil); err != nil {
					lease.Detach()
					return &outcome{code: exitOutput, event: "output", err: fmt.Errorf("the lock is extended, but cannot write to stdout: %w", err)}
				}
				say.event(slog.LevelInfo, "extended", lease.Name(), "lock extended", leaseFields([]*redlatch.Lease{lease}))
				_, err = lease.Detach()
				return err
			})
		},
	}
	f.register(cmd.Flags(), nil) // where the lock is was reported when it was acquired
	say.registerOutput(cmd.Flags(), "what stdout gets: lines for eval, or one of JSON", "sh", "json")
	say.registerLog(cmd.Flags())
	return cmd
}

func newUnlock(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "unlock [flags] [HANDLE | -]",
		Short: "Release the lock of a handle",
		Long: `Release the lock of a handle. The handle is taken from REDLATCH_HANDLE, or with -
from stdin: ps shows an argument to other users.

Exit status: 0, or 64 for a wrong command line or handle, 69 too few nodes
answered, so that the lock expires after its TTL, 79 the lock is no longer held.`,
		Example: `  printf %s "$handle" | redlatch unlock -`,
		Args:    handleArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withHandle(cmd, args, func(ctx context.Context, client *redlatch.Client, handle string) error {
				if err := client.Free(ctx, handle); err != nil {
					return err
				}
				say.event(slog.LevelInfo, "released", "", "lock released", nil)
				if say.format == "json" {
					return writeJSON(cmd.OutOrStdout(), fields{}.add("event", "released").with("nodes", f.opened))
				}
				return nil
			})
		},
	}
	f.register(cmd.Flags(), nil) // where the lock is was reported when it was acquired
	say.registerOutput(cmd.Flags(), "output: text, or a line of JSON", "text", "json")
	say.registerLog(cmd.Flags())
	return cmd
}

// handleArgs takes one handle, or none.
func handleArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(fmt.Errorf("there are %d arguments: %s takes one handle", len(args), cmd.Name()), "try "+cmd.CommandPath()+" --help")
	}
	return nil
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
			end.hint = "check that --nodes is the same as for lock" // others know nothing of it
			return end
		case errors.As(err, &bad) && bad.Field == "handle":
			return usageError(err, `use the value that "redlatch lock" put into REDLATCH_HANDLE`)
		}
		return err
	}))
}

// findHandle returns the handle from the argument, from stdin, or from the
// environment.
func findHandle(args []string, stdin io.Reader) (string, error) {
	const hint = `set REDLATCH_HANDLE, as eval "$(redlatch lock NAME)" does, or pass - and the handle on stdin`
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
