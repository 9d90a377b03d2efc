package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
)

func newWatch(say *reporter) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "watch [flags] NAME",
		Short: "Print who holds a lock, and every change",
		Long: `Print who holds the lock NAME, and a line at every change: the time, the holder
and its token, or that the lock is free. It goes on until a signal comes.

The nodes are asked four times a second, and what a majority of them says is
printed. A holder that comes and goes in between is not seen. What is printed is
the past: a holder may have lost the lock since. If too few nodes answer, one
line says that the state is unknown, and the next follows when they do. Nothing
is changed.

Exit status: 0 after an interrupt; 64 for a wrong command line; 74 if stdout
cannot be written; 128+N if another signal ended it.`,
		Example: `  redlatch watch scheduler

  # reload the proxy whenever there is a new leader
  redlatch watch -o json scheduler | jq --unbuffered -r 'select(.state == "held") | .holders[0].owner' |
    while read -r leader; do ./reload.sh "$leader"; done`,
		Args: nameArgs("watch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return named(args[0], f.located(f.watch(cmd.OutOrStdout(), say, args[0])))
		},
	}
	cmd.Flags().SortFlags = false
	f.register(cmd.Flags())
	say.registerOutput(cmd.Flags(), "output: text, or lines of JSON", "text", "json")
	return cmd
}

// watch prints who holds a lock until a signal comes.
func (f *nodeFlags) watch(out io.Writer, say *reporter, name string) error {
	client, err := f.client(redlatch.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilSignal()
	defer stop()
	for state, err := range client.Watch(ctx, name) {
		if errors.Is(err, redlatch.ErrConfig) {
			return err
		}
		if err := unwritten(writeSeen(out, say, name, time.Now(), state, err)); err != nil {
			return err
		}
	}
	return left(ctx)
}

// seenJSON is what was seen of a lock, as a line of JSON.
type seenJSON struct {
	Time    string       `json:"time"`
	Name    string       `json:"name"`
	State   string       `json:"state"` // held, free or unknown
	Holders []holderJSON `json:"holders"`
	Token   string       `json:"token,omitempty"`
	Message string       `json:"message,omitempty"` // why it is unknown
}

// writeSeen writes what was seen of a lock at one time, or that too few nodes
// answered then.
func writeSeen(out io.Writer, say *reporter, name string, at time.Time, state redlatch.State, failed error) error {
	line := seenJSON{Time: at.UTC().Format(time.RFC3339Nano), Name: name, State: "free", Holders: []holderJSON{}}
	text := "free"
	switch {
	case failed != nil:
		line.State, line.Message = "unknown", message(failed)
		text = "unknown: " + line.Message
	case state.Held:
		h := state.Holder
		line.State, line.Holders, line.Token = "held", holdersJSON([]redlatch.Holder{h}), tokenText(h.Token)
		text = "held by " + columnText(h)
		if h.Token != 0 {
			text += ", token " + line.Token
		}
	}
	if say.format == "json" {
		return writeJSON(out, line)
	}
	_, err := fmt.Fprintf(out, "%s  %s\n", at.Format(time.RFC3339), text)
	return err
}
