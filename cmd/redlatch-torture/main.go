// Command redlatch-torture breaks a quorum of real servers on purpose, and checks
// whether the locks of redlatch hold. It is a command of its own, so that what it
// needs is not part of the command redlatch.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/manual"
	"github.com/redlatch/redlatch/cmd/internal/release"
	"github.com/redlatch/redlatch/cmd/internal/signals"
)

func main() {
	args := os.Args[1:]
	if isClient(args) {
		os.Exit(runClient())
	}
	execute(args).leave()
}

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

// writeJSON writes v as one line.
func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// The exit codes. They are those of redlatch, except the first.
const (
	exitViolated = 1   // a promise was broken, or the unfenced data corrupted
	exitUsage    = 64  // the command line is wrong
	exitFailed   = 69  // there is no server, or it cannot be started or healed
	exitOutput   = 74  // the output cannot be written
	exitSignal   = 128 // plus the number of the signal
)

// failure is an error with the exit code that it leads to.
type failure struct {
	code  int
	event string // what happened, in one word, for JSON
	err   error  // nil if the output says it already
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// failureOf turns an error into a failure. Those of cobra are about the command
// line.
func failureOf(err error) *failure {
	var already *failure
	var signal *signals.Error
	switch {
	case err == nil:
		return &failure{}
	case errors.As(err, &already):
		return already
	case errors.As(err, &signal):
		return &failure{exitSignal + int(signal.Signal), "interrupted", fmt.Errorf("ended by a signal: %w", err)}
	case !errors.Is(err, redlatch.ErrConfig):
		err = fmt.Errorf("%w; try redlatch-torture --help", err)
	}
	return &failure{exitUsage, "usage", err}
}

// report writes a failure to stderr, in one line.
func (f *failure) report(w io.Writer, asJSON bool) {
	if f.err == nil {
		return
	}
	text := strings.Join(strings.Fields(strings.TrimPrefix(f.err.Error(), "redlatch: ")), " ")
	if !asJSON {
		fmt.Fprintf(w, "redlatch-torture: %s\n", text)
		return
	}
	writeJSON(w, struct {
		Event   string `json:"event"`
		Exit    int    `json:"exit"`
		Message string `json:"message"`
	}{f.event, f.code, text})
}

// leave ends this process: by the signal that ended the run, so that a shell
// ends its loop, or with the exit code.
func (f *failure) leave() {
	var signal *signals.Error
	if errors.As(f.err, &signal) {
		signals.DieBy(signal.Signal, false)
	}
	os.Exit(f.code)
}
