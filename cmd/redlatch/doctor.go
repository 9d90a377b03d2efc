package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/internal/terminal"
	"github.com/redlatch/redlatch/node/risk"
)

// exitEndangered is the exit code of doctor where something endangers locks.
const exitEndangered = 1

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	nodeFlags
	name    string
	samples int
	all     bool
	ready   bool
	within  time.Duration
}

func newDoctor(say *reporter) *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check the servers and suggest settings",
		Long: `Check the servers, print the impact and the fix of each problem, measure round
trips, and suggest a TTL and a node timeout. doctor does not touch existing locks:
it tries one under an unused name that begins with --name.

With --ready it only checks whether every node is in service, so that the next one
may be restarted.`,
		Example: `  redlatch doctor --nodes redis://a:6379,redis://b:6379,redis://c:6379
  redlatch doctor --ready -w 2m`,
		Args: noArgs("give addresses in --nodes"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.OutOrStdout(), say) },
	}
	flags := cmd.Flags()
	f.nodeFlags.register(flags, say)
	flags.BoolVar(&f.ready, "ready", false, "only say whether every node is in service, so that the next one may be restarted")
	flag.Duration(flags, &f.within, "within", "w", 0, "with --ready: wait for `DURATION` at the most until it is so; a bare number is seconds")
	flags.StringVar(&f.name, "name", "redlatch-doctor", "the `NAME` that the tried lock begins with")
	flags.IntVar(&f.samples, "samples", 200, "measure `N` round trips on each node, from 1 to 1000; 200 take 5s")
	flags.BoolVar(&f.all, "all", false, "also show the checks that passed")
	say.registerJSON(flags, "write JSON to stdout instead of text, with all checks")
	return cmd
}

func (f *doctorFlags) run(out io.Writer, say *reporter) error {
	switch {
	case f.samples < 1 || f.samples > 1000:
		return &redlatch.ConfigError{Field: "--samples", Value: f.samples, Bound: "between 1 and 1000"}
	case f.within != 0 && !f.ready:
		return usageError(errors.New("-w is for doctor --ready"), "add --ready, or leave out -w")
	case f.within < 0:
		return &redlatch.ConfigError{Field: "-w", Value: f.within, Bound: "0 or more"}
	case f.ready:
		return f.awaitReady(out, say)
	}
	nodes, err := f.open()
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	ctx, stop := untilSignal()
	defer stop()
	opts := redlatch.Options{}
	f.apply(&opts)
	how := admin.ExamineOptions{Name: f.name, Samples: f.samples}
	up, err := say.examine(ctx, nodes, opts, how)
	if end := ended(ctx); end != nil {
		return end
	}
	if err != nil {
		return err
	}
	for i, f := range up.Findings {
		if at := slices.IndexFunc(up.Nodes, func(n admin.NodeCheckup) bool { return n.Node == f.Node }); f.Check == "reach" && at >= 0 {
			if hint, _ := nodeHint(f.Node, up.Nodes[at].Err); hint != "" {
				up.Findings[i].Do = hint
			}
		}
	}
	if say.json {
		err = writeCheckupJSON(out, up)
	} else {
		err = writeCheckup(out, up, f.all)
	}
	switch {
	case err != nil:
		return unwritten(err)
	case up.Answered < up.Need:
		return &outcome{code: exitNoQuorum, event: "no_quorum", err: fmt.Errorf("%d of %d nodes answer; quorum is %d", up.Answered, len(up.Nodes), up.Need)}
	case up.Answered < len(up.Nodes):
		return &outcome{code: exitEndangered, event: "degraded", err: errors.New(silent(up))}
	case up.Worst() == risk.Danger:
		return &outcome{code: exitEndangered, event: "endangered"}
	}
	return nil
}

// examine shows, on a terminal, how far the measuring is.
func (r *reporter) examine(ctx context.Context, nodes []redlatch.Node, opts redlatch.Options, how admin.ExamineOptions) (*admin.Checkup, error) {
	if file, ok := r.w.(*os.File); ok && terminal.Open(file) != nil {
		bar := terminal.NewProgress(file, float64(how.Samples*len(nodes)))
		defer bar.End()
		how.Progress = func() { bar.Show(1, "measuring round trips") }
	}
	return admin.Examine(ctx, nodes, &opts, &how)
}

// silent says which nodes do not answer.
func silent(up *admin.Checkup) string {
	var names []string
	for _, n := range up.Nodes {
		if n.Err != nil {
			names = append(names, n.Node)
		}
	}
	does := "does"
	if len(names) > 1 {
		does = "do"
	}
	return fmt.Sprintf("%d of %d nodes %s not answer: %s", len(names), len(up.Nodes), does, strings.Join(names, ", "))
}

var colours = map[risk.Severity]string{risk.Fine: "32", risk.Advice: "36", risk.Warning: "33", risk.Danger: "1;31"}

// writeCheckup writes the findings, the worst first, and what was measured.
func writeCheckup(out io.Writer, up *admin.Checkup, wide bool) error {
	counts := map[risk.Severity]int{}
	for _, f := range up.Findings {
		counts[f.Severity]++
		if f.Severity == risk.Fine && !wide {
			continue
		}
		about := f.Check
		if f.Node != "" {
			about += ", " + f.Node
		}
		fmt.Fprintf(out, "%s  %s\n", paint(out, colours[f.Severity], fmt.Sprintf("%-7s", f.Severity)), about)
		fmt.Fprintf(out, "         %s\n", harmless(f.Found))
		if f.Means != "" {
			fmt.Fprintf(out, "         impact: %s\n", f.Means)
		}
		if f.Do != "" {
			fmt.Fprintf(out, "         fix: %s\n", f.Do)
		}
	}
	if len(up.Findings) > counts[risk.Fine] || wide {
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tMEDIAN\tP99\tCLOCK")
	for _, n := range up.Nodes {
		if n.Err != nil {
			fmt.Fprintf(w, "%s\t-\t-\t-\n", n.Node)
			continue
		}
		clock := "none"
		if !n.Clockless {
			clock = fmt.Sprintf("%+v ±%v", n.Clock.Round(10*time.Microsecond), n.ClockError.Round(10*time.Microsecond))
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\n", n.Node, n.Median.Round(10*time.Microsecond), n.P99.Round(10*time.Microsecond), clock)
	}
	w.Flush()
	if up.TTL > 0 {
		fmt.Fprintf(out, "\nsuggested: --ttl %v --node-timeout %v\n", up.TTL, up.NodeTimeout)
	}
	var parts []string
	for _, s := range []risk.Severity{risk.Danger, risk.Warning, risk.Advice, risk.Fine} {
		if counts[s] > 0 {
			text := strings.Replace(count(counts[s], s.String()), "advices", "advice", 1)
			if s == risk.Fine {
				text = fmt.Sprint(counts[s], " checks passed")
			}
			parts = append(parts, text)
		}
	}
	_, err := fmt.Fprintln(out, strings.Join(parts, ", "))
	return err
}

// writeCheckupJSON writes a line for each finding and each node, and one for
// the whole.
func writeCheckupJSON(out io.Writer, up *admin.Checkup) error {
	var lines []fields
	for _, f := range up.Findings {
		lines = append(lines, fields{}.add("event", "finding").add("severity", f.Severity.String()).add("check", f.Check).with("node", f.Node).
			add("found", f.Found).with("means", f.Means).with("do", f.Do))
	}
	for _, n := range up.Nodes {
		line := fields{}.add("event", "node").add("node", n.Node)
		if n.Err != nil {
			line = line.add("error", message(n.Err))
		} else {
			line = line.add("median", n.Median).add("p99", n.P99)
			if !n.Clockless {
				line = line.add("clock", n.Clock).add("clock_error", n.ClockError)
			}
		}
		lines = append(lines, line)
	}
	lines = append(lines, fields{}.add("event", "checkup").add("worst", up.Worst().String()).add("answered", up.Answered).
		add("need", up.Need).add("nodes", len(up.Nodes)).add("ttl", up.TTL).add("node_timeout", up.NodeTimeout))
	for _, line := range lines {
		if err := writeJSON(out, line); err != nil {
			return err
		}
	}
	return nil
}

// awaitReady checks the nodes until all are ready, or the time is over.
func (f *doctorFlags) awaitReady(out io.Writer, say *reporter) error {
	return f.withClient(operatorTimeout, func(ctx context.Context, client *redlatch.Client) error {
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
			for _, n := range nodes {
				if first && !n.Ready && !say.json {
					say.line("waiting for "+describeUnready(n), "")
				}
			}
			// The nodes are checked repeatedly: their wait may end sooner than they
			// report, and an unreachable node reports nothing.
			select {
			case <-time.After(min(max(left, 50*time.Millisecond), time.Second, rest)):
			case <-ctx.Done():
			}
		}
	})
}

// concludeReady writes a line for each node that is not ready, and returns the
// outcome.
func concludeReady(out io.Writer, say *reporter, nodes []admin.Readiness, unready int, refused error) error {
	for _, n := range nodes {
		line := fields{}.add("event", "node").add("node", n.Node).add("ready", n.Ready).with("why", n.Why).with("left", n.Left)
		text := ""
		if !n.Ready {
			text = describeUnready(n) + "\n"
		}
		if err := say.print(out, line, text); err != nil {
			return err
		}
	}
	switch {
	case refused != nil:
		return refused
	case unready > 0:
		return &outcome{code: exitNoQuorum, event: "not_ready", err: fmt.Errorf("%d of %d nodes are not ready", unready, len(nodes)),
			hint: "restart no other node before they are; -w DURATION waits for it"}
	}
	return say.print(out, fields{}.add("event", "ready").add("nodes", len(nodes)), fmt.Sprintf("all %d nodes are ready\n", len(nodes)))
}

func describeUnready(n admin.Readiness) string {
	text := n.Node + ": " + harmless(n.Why)
	if n.Left > 0 {
		text += fmt.Sprintf("; ready in %v", n.Left.Round(100*time.Millisecond))
	}
	return text
}
