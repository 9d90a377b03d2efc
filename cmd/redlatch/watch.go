package main

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
)

func newWatch(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "watch [flags] NAME",
		Short: "Print who holds a lock, and every change",
		Long: `Print who holds the lock NAME, and a line at every change, until a signal comes. The
nodes are asked four times a second, so a holder that comes and goes in between is
not seen. If too few nodes answer, a line says that the state is unknown.`,
		Example: `  redlatch watch --json scheduler | jq --unbuffered -r 'select(.state == "held") | .token'`,
		Args:    nameArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.about(args[0], f.watch(cmd.OutOrStdout(), say, args[0]))
		},
	}
	f.register(cmd.Flags(), say)
	say.registerJSON(cmd.Flags(), "write JSON to stdout instead of text")
	return cmd
}

// watch prints who holds a lock until a signal comes.
func (f *nodeFlags) watch(out io.Writer, say *reporter, name string) error {
	return f.withClient(operatorTimeout, func(ctx context.Context, client *redlatch.Client) error {
		for holder, err := range client.Watch(ctx, name) {
			if errors.Is(err, redlatch.ErrConfig) {
				return err
			}
			if err := writeSeen(out, say, name, time.Now(), holder, err); err != nil {
				return err
			}
		}
		return left(ctx)
	})
}

// left is how a verb ends that goes on until a signal.
func left(ctx context.Context) error {
	if signal, ok := errors.AsType[*interruptedError](context.Cause(ctx)); ok && signal.Signal == syscall.SIGINT {
		return nil // the usual way to leave
	}
	return ended(ctx)
}

// writeSeen writes what was seen of a lock at one time, or that too few nodes
// answered then.
func writeSeen(out io.Writer, say *reporter, name string, at time.Time, holder *redlatch.Holder, failed error) error {
	line := fields{}.add("time", at).add("name", name)
	text := "free"
	switch {
	case failed != nil:
		line = line.add("state", "unknown").add("holders", []fields{}).add("message", message(failed))
		text = "unknown: " + message(failed)
	case holder != nil:
		h := *holder
		line = line.add("state", "held").add("holders", holdersJSON([]redlatch.Holder{h})).with("token", h.Token)
		text = "held by " + columnText(h)
		if h.Token != 0 {
			text += ", token " + tokenText(h.Token)
		}
	default:
		line = line.add("state", "free").add("holders", []fields{})
	}
	return say.print(out, line, at.Format(time.RFC3339)+"  "+text+"\n")
}
