package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/flag"
)

// listFlags are the flags of ls and show.
type listFlags struct {
	nodeFlags
	watch    bool
	interval time.Duration
}

func (f *listFlags) register(cmd *cobra.Command, say *reporter) {
	flags := cmd.Flags()
	f.nodeFlags.register(flags, say)
	flags.BoolVar(&f.watch, "watch", false, "repeat until interrupted")
	flag.Duration(flags, &f.interval, "interval", "", time.Second, "with --watch: the `INTERVAL` between two listings")
	say.registerOutput(flags, "output: text, wide, json", "text", "wide", "json")
}

func newLs(say *reporter) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:   "ls [flags] [PREFIX]",
		Short: "List the locks that are held or waited for",
		Long: `List the locks that are held or contended, with all names or those that begin with
PREFIX: the holder, since when, when it expires unless extended, how many wait, and
how many nodes name it. A lock is held if a majority names one holder. ls does not
find locks of foreign clients on Redis; "redlatch show" does.

Exit status: 0, or 64 for a wrong command line, 69 if too few nodes answered.`,
		Example: `  redlatch ls -o wide deploy/
  redlatch ls -o json | jq -r 'select(.waiting > 10) | .name'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(fmt.Errorf("there are %d arguments: ls takes one prefix", len(args)), "quote a prefix with spaces in it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			return f.run(cmd.OutOrStdout(), say, func(ctx context.Context, client *redlatch.Client, out io.Writer) error {
				survey, err := admin.New(client).List(ctx)
				if survey == nil {
					return err
				}
				for _, failed := range survey.Failed {
					if err == nil { // otherwise it names them all
						say.warn("", "%s does not answer: %s", failed.Node, message(failed.Err))
					}
				}
				var locks []admin.LockState
				for _, l := range survey.Locks {
					if strings.HasPrefix(l.Name, prefix) {
						locks = append(locks, l)
					}
				}
				return errors.Join(unwritten(writeLocks(out, say, locks)), err)
			})
		},
	}
	f.register(cmd, say)
	return cmd
}

func newShow(say *reporter) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Show one lock: holders, waiters, per-node state",
		Long: `Show the holders of the lock NAME and their tokens, the waiters in the order in
which they are served, the completed occurrences of a job with --once, and the
answer of each node. The fence is the highest token that the nodes remember.

Exit status: 0, or 64 for a wrong command line, 69 if too few nodes answered.`,
		Example: `  redlatch show --watch nightly`,
		Args:    nameArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.about(args[0], f.run(cmd.OutOrStdout(), say, func(ctx context.Context, client *redlatch.Client, out io.Writer) error {
				state, err := admin.New(client).Show(ctx, args[0])
				if state == nil {
					return err
				}
				if say.format == "json" {
					return errors.Join(unwritten(writeJSON(out, stateJSON(state, true))), err)
				}
				return errors.Join(unwritten(writeState(out, state)), err)
			}))
		},
	}
	f.register(cmd, say)
	return cmd
}

// run shows the locks once, or repeatedly.
func (f *listFlags) run(out io.Writer, say *reporter, show func(context.Context, *redlatch.Client, io.Writer) error) error {
	if f.interval < 100*time.Millisecond || f.interval > time.Hour {
		return &redlatch.ConfigError{Field: "--interval", Value: f.interval, Bound: "between 100ms and 1h"}
	}
	return f.withClient(operatorTimeout, func(ctx context.Context, client *redlatch.Client) error {
		if !f.watch {
			err := show(ctx, client, out)
			return cmp.Or(ended(ctx), err)
		}
		return repeat(ctx, out, f.interval, func(out io.Writer) error {
			err := show(ctx, client, out)
			switch {
			case err == nil || ctx.Err() != nil:
			case errors.Is(err, redlatch.ErrConfig):
				return err
			case say.format == "json":
				say.warn("", "%s", message(err))
			default:
				fmt.Fprintf(out, "%s\n", message(err)) // it may pass
			}
			return nil
		})
	})
}

// writeLocks writes a line for each lock.
func writeLocks(out io.Writer, say *reporter, locks []admin.LockState) error {
	if say.format == "json" {
		for i := range locks {
			if err := writeJSON(out, stateJSON(&locks[i], false)); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	wide := say.format == "wide"
	fmt.Fprint(w, "NAME\tSTATE\tHOLDER\tSINCE\tEXPIRES IN\tWAITING CLIENTS\tNODES")
	if wide {
		fmt.Fprint(w, "\tTOKEN\tFENCE\tEACH NODE")
	}
	fmt.Fprintln(w)
	for i := range locks {
		l := &locks[i]
		holder, since, left, token := "-", "-", "-", redlatch.Token(0)
		if len(l.Holders) > 0 {
			h := l.Holders[0]
			holder, left, token = columnText(h), leftText(h.Left), h.Token
			if !h.Since.IsZero() {
				since = agoText(h, time.DateTime)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s", harmless(l.Name), stateOf(l), holder, since, left, l.Waiting, votes(l))
		if wide {
			fmt.Fprintf(w, "\t%s\t%s\t%s", number(token), number(l.Fence), strings.Join(eachNode(l), "; "))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// repeat shows something repeatedly until a signal ends it, as expected. On a
// terminal the page is updated in place; elsewhere each one is written after
// the last.
func repeat(ctx context.Context, out io.Writer, interval time.Duration, show func(io.Writer) error) error {
	inPlace := false
	if f, ok := out.(*os.File); ok {
		inPlace = isTerminal(f) && os.Getenv("TERM") != "dumb"
	}
	for first := true; ; first = false {
		// Written in one call, so that no half of it is visible.
		var page bytes.Buffer
		err := show(&page)
		if ctx.Err() != nil {
			return left(ctx)
		}
		if err != nil {
			return err
		}
		text := page.Bytes()
		if inPlace {
			text = refresh(text, first)
		}
		if _, err := out.Write(text); err != nil {
			return unwritten(err)
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
		}
	}
}

// left is how a verb ends that goes on until a signal.
func left(ctx context.Context) error {
	var signal *interruptedError
	if errors.As(context.Cause(ctx), &signal) && signal.Signal == syscall.SIGINT {
		return nil // the usual way to leave
	}
	return ended(ctx)
}

// refresh turns a page into one that overwrites the last: from the top, each
// line to its end, and nothing below it. The screen is not cleared first, so
// that nothing flickers.
func refresh(page []byte, first bool) []byte {
	const top, restOfLine, below = "\x1b[H", "\x1b[K\n", "\x1b[J"
	text := bytes.ReplaceAll(page, []byte("\n"), []byte(restOfLine))
	start := top
	if first {
		start = "\x1b[2J" + top
	}
	return append(append([]byte(start), text...), below...)
}
