package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
	"github.com/redlatch/redlatch/internal/terminal"
)

// exitBroken is the exit code of a demo in which a promise was broken.
const exitBroken = 1

func newDemo(say *reporter) *cobra.Command {
	var noFence bool
	var pace time.Duration
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Show what a lock with tokens protects from, on this machine",
		Long: `Show what a lock with tokens protects from, in half a minute, with nothing
installed: clients that contend, one that is paused for longer than its lock lives,
and servers that die. Servers and clients are processes of this program. One is
stopped with SIGSTOP and others are killed. Each line is a result.`,
		Example: `  redlatch demo
  redlatch demo --no-fence`,
		Args: noArgs("try redlatch demo --help"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if pace < 0 {
				return &redlatch.ConfigError{Field: "--pace", Value: pace, Bound: "0 or more"}
			}
			return runDemo(cmd.OutOrStdout(), say, demo.Options{NoFence: noFence, Pace: pace})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&noFence, "no-fence", false, "let the account accept every write: the paused client overwrites another's")
	flag.Duration(flags, &pace, "pace", "", 700*time.Millisecond, "wait for `DURATION` after each line; a bare number is seconds")
	say.registerJSON(flags, "write JSON to stdout instead of text")
	return cmd
}

// toneColours are the colours of lines.
var toneColours = map[demo.Tone]string{demo.Heading: "1", demo.Good: "32", demo.Fault: "33", demo.Bad: "1;31"}

func runDemo(out io.Writer, say *reporter, opts demo.Options) error {
	ctx, stop := untilSignal()
	defer stop()
	last := ""
	opts.Print = func(l demo.Line) error {
		text := l.Text
		switch {
		case l.Tone == demo.Heading:
			text = "\n" + paint(out, toneColours[l.Tone], text)
		case l.Who != "":
			text = fmt.Sprintf("   %-9s", l.Who)
			for i, part := range terminal.Apart(l.Text, &last) {
				if part != "" {
					text += paint(out, []string{toneColours[l.Tone], "2"}[i%2], part)
				}
			}
		}
		return say.print(out, fields{}.add("time", time.Now()).with("who", l.Who).add("tone", string(l.Tone)).add("text", l.Text), text+"\n")
	}
	err := demo.Run(ctx, opts)
	var end *outcome
	switch {
	case err == nil || errors.As(err, &end):
		return err
	case ctx.Err() != nil:
		return ended(ctx)
	case errors.Is(err, demo.ErrBroken):
		return &outcome{code: exitBroken, event: "broken", err: err}
	}
	return &outcome{code: exitNoQuorum, event: "failed", err: err}
}
