package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/internal/manual"
	"github.com/redlatch/redlatch/cmd/internal/release"
)

// execute runs the command line, reports an error, and returns how it ended.
func execute(args []string) *failure {
	root, output := newRoot()
	root.SetArgs(args)
	end := failureOf(root.Execute())
	end.report(os.Stderr, *output == "json")
	return end
}

// finish adds what all our commands have: a version, manual pages, and errors
// that execute reports.
func finish(cmd *cobra.Command) {
	cmd.Version = release.Version()
	cmd.SetVersionTemplate("redlatch-torture {{.Version}}\n")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.AddCommand(newMan())
}

// newMan writes the manual page. It is for packagers, and so is hidden.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual page into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := manual.Write(cmd.Root(), args[0], nil); err != nil {
				return &failure{code: exitOutput, event: "output", err: fmt.Errorf("the manual cannot be written: %w", err)}
			}
			return nil
		},
	}
}

// output is a pflag.Value: how the verdict is written.
type output string

func (o *output) String() string { return string(*o) }
func (o *output) Type() string   { return "text|json" }
func (o *output) Set(s string) error {
	if s != "text" && s != "json" {
		return errors.New("must be text or json")
	}
	*o = output(s)
	return nil
}

// writeJSON writes v as one line.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
