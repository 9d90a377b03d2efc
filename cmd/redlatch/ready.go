package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/seconds"
)

// readyFlags are the flags of doctor that ask whether every node is in service.
type readyFlags struct {
	ready  bool
	within time.Duration
}

func (f *readyFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.ready, "ready", false, "only say whether every node is in service, so that the next one may be restarted")
	seconds.Var(flags, &f.within, "within", "w", 0, "with --ready: wait for `DURATION` at the most until it is so; a bare number is seconds")
}

// check rejects flags without meaning.
func (f *readyFlags) check() error {
	switch {
	case f.within != 0 && !f.ready:
		return usageError(errors.New("-w is for doctor --ready"), "add --ready, or leave out -w")
	case f.within < 0:
		return &redlatch.ConfigError{Field: "-w", Value: f.within, Bound: "0 or more"}
	}
	return nil
}

// awaitReady checks the nodes until all are ready, or the time is over.
func (f *doctorFlags) awaitReady(out io.Writer, say *reporter) error {
	client, err := f.client(redlatch.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilSignal()
	defer stop()
	end := time.Now().Add(f.within)
	for first := true; ; first = false {
		nodes := admin.New(client).Ready(ctx)
		if end := ended(ctx); end != nil {
			return end
		}
		var left time.Duration
		var refused error
		unready := 0
		for _, n := range nodes {
			if n.Ready {
				continue
			}
			unready++
			left = max(left, n.Left)
			if errors.Is(n.Err, redlatch.ErrConfig) && !errors.Is(n.Err, redlatch.ErrChanging) {
				refused = n.Err // waiting does not help
			}
		}
		rest := time.Until(end)
		if unready == 0 || refused != nil || rest <= 0 {
			return concludeReady(out, say, nodes, unready, refused)
		}
		if first && say.format != "json" {
			for _, n := range nodes {
				if !n.Ready {
					say.line("waiting for "+describeUnready(n), "")
				}
			}
		}
		// The nodes are checked repeatedly: their wait may end sooner than they
		// report, and an unreachable node reports nothing.
		pause := time.NewTimer(min(max(left, 50*time.Millisecond), time.Second, rest))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// concludeReady writes a line for each node that is not ready, and returns the
// outcome.
func concludeReady(out io.Writer, say *reporter, nodes []admin.Readiness, unready int, refused error) error {
	var err error
	for _, n := range nodes {
		switch {
		case err != nil:
		case say.format == "json":
			line := map[string]any{"event": "node", "node": n.Node, "ready": n.Ready}
			if !n.Ready {
				line["why"] = harmless(n.Why)
			}
			if n.Left > 0 {
				line["left_ms"] = ms(n.Left)
			}
			err = writeJSON(out, line)
		case !n.Ready:
			_, err = fmt.Fprintln(out, describeUnready(n))
		}
	}
	switch {
	case err != nil:
		return unwritten(err)
	case refused != nil:
		return refused
	case unready > 0:
		return &outcome{code: exitNoQuorum, event: "not_ready", err: fmt.Errorf("%d of %d nodes are not ready", unready, len(nodes)),
			hint: "restart no other node before they are; -w DURATION waits for it"}
	case say.format == "json":
		return unwritten(writeJSON(out, map[string]any{"event": "ready", "nodes": len(nodes)}))
	}
	_, err = fmt.Fprintf(out, "all %d nodes are ready\n", len(nodes))
	return unwritten(err)
}

func describeUnready(n admin.Readiness) string {
	text := n.Node + ": " + harmless(n.Why)
	if n.Left > 0 {
		text += fmt.Sprintf("; ready in %v", n.Left.Round(100*time.Millisecond))
	}
	return text
}
