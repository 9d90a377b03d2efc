package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/internal/signals"
)

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
	code   int
	event  string // what happened, in one word, for JSON
	err    error  // nil if the output says it already
	hint   string // what to do about it
	signal syscall.Signal
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
	var (
		already *failure
		signal  *signals.Error
		bad     *redlatch.ConfigError
	)
	switch {
	case err == nil:
		return &failure{}
	case errors.As(err, &already):
		return already
	case errors.As(err, &signal):
		return &failure{code: exitSignal + int(signal.Signal), signal: signal.Signal, event: "interrupted",
			err: fmt.Errorf("ended by a signal: %w", err)}
	case errors.As(err, &bad):
		return &failure{code: exitUsage, event: "usage", err: err}
	}
	return &failure{code: exitUsage, event: "usage", err: err, hint: "try redlatch-torture --help"}
}

// report writes a failure to stderr, in one line.
func (f *failure) report(w io.Writer, asJSON bool) {
	if f.err == nil {
		return
	}
	text := strings.Join(strings.Fields(strings.TrimPrefix(f.err.Error(), "redlatch: ")), " ")
	if asJSON {
		writeJSON(w, struct {
			Event   string `json:"event"`
			Exit    int    `json:"exit"`
			Message string `json:"message"`
			Hint    string `json:"hint,omitempty"`
		}{f.event, f.code, text, f.hint})
		return
	}
	if f.hint != "" {
		text += "; " + f.hint
	}
	fmt.Fprintf(w, "redlatch-torture: %s\n", text)
}

// leave ends this process: by the signal that ended the run, so that a shell
// ends its loop, or with the exit code.
func (f *failure) leave() {
	if f.signal != 0 {
		signals.DieBy(f.signal, false)
	}
	os.Exit(f.code)
}
