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
	"github.com/redlatch/redlatch/internal/screen"
	"github.com/redlatch/redlatch/node"
)

// exitEndangered is the exit code of doctor where something endangers locks.
const exitEndangered = 1

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	nodeFlags
	readyFlags
	name    string
	samples int
}

func newDoctor(say *reporter) *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check the servers and suggest settings",
		Long: `Check the servers for what endangers locks, and print the impact and the fix of
each problem: masters or replicas, one server listed twice, eviction,
persistence, clocks, quarantine and markers, versions, memory, the user's rights,
notifications; for a file its file system and permissions. Measure round trips,
and suggest a TTL and a node timeout.

doctor does not touch existing locks. It tries a lock under an unused name that
begins with --name, and removes it; if doctor is killed, that lock expires within
seconds.

With --ready it only checks whether every node is in service: it answers, is
marked for this membership, is not quarantined, and has a copy of the held locks.
It prints a line for each node that is not, with the remaining time. Use it to
restart servers one after the other: restart one, wait with --ready -w 2m, go on
to the next. The quarantine of a restarted node begins with the first request
that it gets, and this is one.

Exit status:
    0  nothing endangers the locks (there may be warnings); --ready: all are
    1  something endangers them, or makes them unavailable; or a node does not
       answer, though enough do
   64  the command line is wrong
   69  too few nodes answered; --ready: not every node is ready`,
		Example: `  redlatch doctor --nodes redis://a:6379,redis://b:6379,redis://c:6379
  redlatch doctor -o json | jq 'select(.severity == "danger")'
  redlatch doctor --name orders/probe     # for a user who may use orders/* alone
  redlatch doctor --ready -w 2m           # may the next server be restarted?`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(fmt.Errorf("doctor takes no argument, and %q is one", args[0]), "give addresses in --nodes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.OutOrStdout(), say) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.nodeFlags.register(flags)
	f.readyFlags.register(flags)
	flags.StringVar(&f.name, "name", "redlatch-doctor", "the `NAME` that the tried lock begins with")
	flags.IntVar(&f.samples, "samples", 200, "measure `N` round trips on each node, from 1 to 1000; 200 take 5s")
	say.registerOutput(flags, "output: problems, all, or JSON", "text", "wide", "json")
	return cmd
}

func (f *doctorFlags) run(out io.Writer, say *reporter) error {
	if f.samples < 1 || f.samples > 1000 {
		return &redlatch.ConfigError{Field: "--samples", Value: f.samples, Bound: "between 1 and 1000"}
	}
	if err := f.check(); err != nil {
		return err
	}
	if f.ready {
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
	if say.format == "json" {
		err = writeCheckupJSON(out, up)
	} else {
		err = writeCheckup(out, up, say.format == "wide")
	}
	switch {
	case err != nil:
		return unwritten(err)
	case up.Answered < up.Need:
		return &outcome{code: exitNoQuorum, event: "no_quorum", err: fmt.Errorf("%d of %d nodes answer; quorum is %d", up.Answered, len(up.Nodes), up.Need)}
	case up.Answered < len(up.Nodes):
		return &outcome{code: exitEndangered, event: "degraded", err: errors.New(silent(up))}
	case up.Worst() == node.Danger:
		return &outcome{code: exitEndangered, event: "endangered"}
	}
	return nil
}

// examine shows, on a terminal, how far the measuring is.
func (r *reporter) examine(ctx context.Context, nodes []redlatch.Node, opts redlatch.Options, how admin.ExamineOptions) (*admin.Checkup, error) {
	if file, ok := r.w.(*os.File); ok && screen.Open(file) != nil {
		bar := screen.NewProgress(file, float64(how.Samples*len(nodes)))
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

var colours = map[node.Severity]string{node.Fine: "32", node.Advice: "36", node.Warning: "33", node.Danger: "1;31"}

// writeCheckup writes the findings, the worst first, and what was measured.
func writeCheckup(out io.Writer, up *admin.Checkup, wide bool) error {
	counts := map[node.Severity]int{}
	for _, f := range up.Findings {
		counts[f.Severity]++
		if f.Severity == node.Fine && !wide {
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
	if len(up.Findings) > counts[node.Fine] || wide {
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tMEDIAN\tP99\tCLOCK")
	for _, n := range up.Nodes {
		if n.Err != nil {
			fmt.Fprintf(w, "%s\t-\t-\t-\n", n.Node)
			continue
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t%+v ±%v\n", n.Node, n.Median.Round(10*time.Microsecond), n.P99.Round(10*time.Microsecond),
			n.Clock.Round(10*time.Microsecond), n.ClockError.Round(10*time.Microsecond))
	}
	w.Flush()
	if up.TTL > 0 {
		fmt.Fprintf(out, "\nsuggested: --ttl %v --node-timeout %v\n", up.TTL, up.NodeTimeout)
	}
	var parts []string
	for _, s := range []node.Severity{node.Danger, node.Warning, node.Advice, node.Fine} {
		if counts[s] > 0 {
			text := s.String()
			if s == node.Fine {
				text = "checks passed"
			}
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], text))
		}
	}
	_, err := fmt.Fprintln(out, strings.Join(parts, ", "))
	return err
}

// writeCheckupJSON writes a line for each finding and each node, and one for
// the whole.
func writeCheckupJSON(out io.Writer, up *admin.Checkup) error {
	for _, f := range up.Findings {
		if err := writeJSON(out, struct {
			Event    string `json:"event"`
			Severity string `json:"severity"`
			Check    string `json:"check"`
			Node     string `json:"node,omitempty"`
			Found    string `json:"found"`
			Means    string `json:"means,omitempty"`
			Do       string `json:"do,omitempty"`
		}{"finding", f.Severity.String(), f.Check, f.Node, f.Found, f.Means, f.Do}); err != nil {
			return err
		}
	}
	for _, n := range up.Nodes {
		line := map[string]any{"event": "node", "node": n.Node}
		if n.Err != nil {
			line["error"] = message(n.Err)
		} else {
			line["median_ms"], line["p99_ms"] = ms(n.Median), ms(n.P99)
			line["clock_ms"], line["clock_error_ms"] = ms(n.Clock), ms(n.ClockError)
		}
		if err := writeJSON(out, line); err != nil {
			return err
		}
	}
	return writeJSON(out, struct {
		Event       string   `json:"event"`
		Worst       string   `json:"worst"`
		Answered    int      `json:"answered"`
		Need        int      `json:"need"`
		Nodes       int      `json:"nodes"`
		TTL         *float64 `json:"ttl_ms"`
		NodeTimeout *float64 `json:"node_timeout_ms"`
	}{"checkup", up.Worst().String(), up.Answered, up.Need, len(up.Nodes), ms(up.TTL), ms(up.NodeTimeout)})
}
