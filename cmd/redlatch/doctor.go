package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
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
		Short: "Look for what endangers locks, and measure which TTL fits",
		Long: `Look for what endangers locks on the nodes, and say what it means and what to do:
masters or replicas, one server listed twice, eviction, persistence, clocks,
quarantine and markers, versions, memory, the user's rights, whether waiters can
be woken; for a file its file system and permissions. Measure round trips, and
say which TTL and node time limit fit.

Locks are left as they are. What a lock does is tried under a name that nobody
has, beginning with --name, and taken back; whatever is left if doctor is killed
runs out within seconds.

With --ready it only says whether every node is in service: it answers, is
marked for this membership, is not in quarantine, and has been given the locks
that are held. There is a line for each node that is not, and for how long. So
servers are restarted one after the other: restart one, wait with --ready -w 2m,
go on to the next. A node that restarted is quarantined from the first request
that finds it so, and this is one.

Exit status:
    0  nothing endangers the locks (there may be warnings); --ready: all are
    1  something endangers them, or keeps them from being had; or a node does not
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
	flags.StringVar(&f.name, "name", "redlatch-doctor", "the `NAME` that the locks begin with which are tried")
	flags.IntVar(&f.samples, "samples", 50, "how many round trips are measured: `N`, from 1 to 1000")
	say.registerOutput(flags, "how it is told: what is not as it should be, everything, or as JSON", "text", "wide", "json")
	return cmd
}

func (f *doctorFlags) run(out io.Writer, say *reporter) error {
	if f.samples < 1 || f.samples > 1000 {
		return &redlatch.ConfigError{Field: "--samples", Value: f.samples, Bound: "from 1 to 1000"}
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
	up, err := admin.Examine(ctx, nodes, opts, admin.ExamineOptions{Name: f.name, Samples: f.samples})
	if end := ended(ctx); end != nil {
		return end
	}
	if err != nil {
		return err
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
		return &outcome{code: exitNoQuorum, event: "no_quorum", err: fmt.Errorf("%d of %d nodes answer, and %d are needed", up.Answered, len(up.Nodes), up.Need)}
	case up.Answered < len(up.Nodes):
		return &outcome{code: exitEndangered, event: "degraded", err: errors.New(silent(up))}
	case up.Worst() == node.Danger:
		return &outcome{code: exitEndangered, event: "endangered"}
	}
	return nil
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
			fmt.Fprintf(out, "         so: %s\n", f.Means)
		}
		if f.Do != "" {
			fmt.Fprintf(out, "         do: %s\n", f.Do)
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
		fmt.Fprintf(out, "\nfits: --ttl %v --node-timeout %v\n", up.TTL, up.NodeTimeout)
	}
	var parts []string
	for _, s := range []node.Severity{node.Danger, node.Warning, node.Advice, node.Fine} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", counts[s], s))
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
