package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

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
