package main

import (
	"cmp"
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
)

func newLs(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "ls [flags] [PREFIX]",
		Short: "List the locks that are held or waited for",
		Long: `List the locks that are held or contended, with all names or those that begin with
PREFIX: the holder, since when, when it expires unless extended, how many wait, and
how many nodes name it. A lock is held if a majority names one holder. ls does not
find locks of foreign clients on Redis; "redlatch show" does.`,
		Example: `  redlatch ls deploy/
  redlatch ls --json | jq -r 'select(.waiting > 10) | .name'`,
		Args: mostOneArg("prefix", "quote a prefix with spaces in it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			return f.withClient(operatorTimeout, func(ctx context.Context, client *redlatch.Client) error {
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
				if len(locks) == 0 && err == nil && !say.json {
					text := fmt.Sprintf("no lock is held or waited for that begins with %q\n", prefix)
					return say.print(cmd.OutOrStdout(), nil, strings.Replace(text, ` that begins with ""`, "", 1))
				}
				err = errors.Join(unwritten(writeLocks(cmd.OutOrStdout(), say, locks)), err)
				return cmp.Or(ended(ctx), err)
			})
		},
	}
	f.register(cmd.Flags(), say)
	say.registerJSON(cmd.Flags(), "write JSON to stdout instead of text")
	return cmd
}

func newShow(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Show one lock: holders, waiters, per-node state",
		Long: `Show the holders of the lock NAME and their tokens, the waiters in the order in
which they are served, the completed occurrences of a job with --once, and the
answer of each node. The fence is the highest token that the nodes remember.`,
		Example: `  redlatch show nightly`,
		Args:    nameArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.about(args[0], f.withClient(operatorTimeout, func(ctx context.Context, client *redlatch.Client) error {
				state, err := admin.New(client).Show(ctx, args[0])
				if state == nil {
					return err
				}
				var text strings.Builder
				writeState(&text, state)
				err = errors.Join(say.print(cmd.OutOrStdout(), stateJSON(state, true), text.String()), err)
				return cmp.Or(ended(ctx), err)
			}))
		},
	}
	f.register(cmd.Flags(), say)
	say.registerJSON(cmd.Flags(), "write JSON to stdout instead of text")
	return cmd
}

// writeLocks writes a line for each lock.
func writeLocks(out io.Writer, say *reporter, locks []admin.LockState) error {
	if say.json {
		for i := range locks {
			if err := writeJSON(out, stateJSON(&locks[i], false)); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tHOLDER\tSINCE\tEXPIRES IN\tWAITING CLIENTS\tNODES")
	for i := range locks {
		l := &locks[i]
		holder, since, left := "-", "-", "-"
		if len(l.Holders) > 0 {
			h := l.Holders[0]
			holder, left = columnText(h), leftText(h.Left)
			if !h.Since.IsZero() {
				since = agoText(h, time.DateTime)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d/%d\n", harmless(l.Name), stateOf(l), holder, since, left, l.Waiting, l.Naming(), len(l.Nodes))
	}
	return w.Flush()
}
