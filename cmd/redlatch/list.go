package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/seconds"
)

// listFlags are the flags of ls and show.
type listFlags struct {
	nodeFlags
	watch    bool
	interval time.Duration
}

func (f *listFlags) register(cmd *cobra.Command, say *reporter) {
	flags := cmd.Flags()
	flags.SortFlags = false
	f.nodeFlags.register(flags)
	flags.BoolVar(&f.watch, "watch", false, "repeat until interrupted")
	seconds.Var(flags, &f.interval, "interval", "", time.Second, "with --watch: the `INTERVAL` between two listings")
	say.registerOutput(flags, "output: text, wide, json", "text", "wide", "json")
}

const unlisted = `ls does not find locks that other clients hold on Redis. "redlatch show" does.`

func newLs(say *reporter) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:   "ls [flags] [PREFIX]",
		Short: "List the locks that are held or waited for",
		Long: `List the locks that are held or waited for, with all names or those that begin
with PREFIX: who holds each, since when, in what time it expires unless it is
extended, how many wait, and how many nodes say so. Nodes may disagree, while
contenders split them or after one was away: a lock is held if a majority names
one holder, else the state is split or waited, or unknown if that depends on
nodes that do not answer. Of a lock with readers or slots ls says how many hold
it, and names the one that has held it longest: its are the times in the line.
Nothing is changed.

` + unlisted + `

Exit status: 0; 64 for a wrong command line; 69 if too few nodes answered, after
what the others said; 74 if stdout cannot be written.`,
		Example: `  redlatch ls
  redlatch ls -o wide deploy/
  redlatch ls --watch
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
		Long: `Show the per-node state of the lock NAME: the holder and its token, when it
expires unless extended, the fence, which is the highest token that the node
remembers, and the waiters, in the order in which they are served. It shows every
reader and every slot, and what each waiter waits for: a reader's share, a slot,
or the whole lock. It shows locks of other clients too, and changes nothing. If
the state depends on nodes that do not answer, it is unknown, not free. For a job
that runs with --once it shows which occurrences are completed, and since when
most nodes remember that.

Exit status: 0, whether or not it is held; 64 for a wrong command line; 69 if
too few nodes answered, after what the others said; 74 if stdout cannot be
written.`,
		Example: `  redlatch show nightly
  redlatch show --watch nightly
  redlatch show -o json nightly | jq .holders`,
		Args: nameArgs("show"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return named(args[0], f.run(cmd.OutOrStdout(), say, func(ctx context.Context, client *redlatch.Client, out io.Writer) error {
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
	client, err := f.client(redlatch.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilSignal()
	defer stop()
	if !f.watch {
		err := show(ctx, client, out)
		if end := ended(ctx); end != nil {
			return end
		}
		return err
	}
	return repeat(ctx, out, f.interval, func(out io.Writer) error {
		err := show(ctx, client, out)
		if errors.Is(err, redlatch.ErrConfig) {
			return err
		}
		if err != nil && ctx.Err() == nil && say.format != "json" {
			fmt.Fprintf(out, "%s\n", message(err)) // it may pass
		} else if err != nil && ctx.Err() == nil {
			say.warn("", "%s", message(err))
		}
		return nil
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
