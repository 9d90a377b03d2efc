package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// confirm asks a question on the terminal, and returns nil for a yes. Without a
// terminal --yes is needed.
func confirm(ctx context.Context, in io.Reader, question string) error {
	if file, ok := in.(*os.File); ok && !isTerminal(file) {
		return usageError(errors.New("not a terminal"), "pass --yes")
	}
	fmt.Fprint(os.Stderr, question)
	type line struct {
		text string
		err  error
	}
	answered := make(chan line, 1) // a read does not end with a signal
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		answered <- line{text, err}
	}()
	select {
	case answer := <-answered:
		switch strings.ToLower(strings.TrimSpace(answer.text)) {
		case "y", "yes":
			return nil
		}
		if answer.err != nil {
			fmt.Fprintln(os.Stderr)
		}
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
		return signalled(ctx, errUnchanged)
	}
	return &outcome{code: exitSignal + 2, event: "declined", err: errUnchanged}
}
