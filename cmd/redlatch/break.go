package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// breakFlags are the flags of break.
type breakFlags struct {
	nodeFlags
	yes     bool
	foreign bool
}

func newBreak(say *reporter) *cobra.Command {
	f := &breakFlags{}
	cmd := &cobra.Command{
		Use:   "break [flags] NAME",
		Short: "Force-release a lock",
		Long: `Force-release the lock NAME, for when its holder hangs.

This does not stop the former holder. It goes on, believing that it holds the
lock, until it next asks the nodes, which a living one does within a third of its
TTL, or until the resource has seen a higher token and refuses its own. So stop
it first if you can. The fence is raised, so that the next holder's token is
above that of the former one: a resource that checks tokens is safe.

A lock with readers or slots is released for all of them.

break shows the holder and asks, unless --yes is given. A holder that acquires
the lock after that keeps it, except that a holder without a token looks like
the next one without a token. The lock is broken when a majority of nodes has
released it; break shows what each node answered. Waiters keep their places, and
the first of them is notified.

Exit status:
    0  the lock is broken, or was not held
   64  the command line is wrong
   69  too few nodes answered
   75  another holds the lock by now, or its format is foreign
  130  the answer was no
128+N  signal N came before the lock was broken: nothing was changed`,
		Example: `  redlatch break nightly
  redlatch break --yes -o json nightly`,
		Args: nameArgs("break"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return named(args[0], f.run(cmd, say, args[0]))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.foreign, "foreign", false, "also remove a key that is no plain lock, such as Redisson's hash")
	say.registerOutput(flags, "output: text, or a line of JSON", "text", "json")
	return cmd
}

func (f *breakFlags) run(cmd *cobra.Command, say *reporter, name string) error {
	client, err := f.client(redlatch.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilSignal()
	defer stop()
	out := cmd.OutOrStdout()
	state, err := admin.New(client).Show(ctx, name)
	if ctx.Err() != nil {
		return unchanged(ctx)
	}
	if err != nil {
		return err
	}
	if len(state.Holders) == 0 {
		if say.format == "json" {
			return unwritten(writeJSON(out, breakJSON{Event: "free", Name: name}))
		}
		_, err := fmt.Fprintf(out, "%q is not held\n", name)
		return unwritten(err)
	}
	if h := state.Holders[0]; h.Kind == redlatch.KindForeign && !f.foreign {
		return &outcome{code: exitHeld, event: "held", err: &redlatch.HeldError{Name: name, Holders: state.Holders},
			hint: "add --foreign to remove a key that is no plain lock"}
	}
	if !f.yes {
		if err := confirm(ctx, cmd.InOrStdin(), breakQuestion(state)); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return unchanged(ctx)
	}
	report, err := admin.New(client).Break(ctx, name, &admin.BreakOptions{Seen: shownUpTo(state), Foreign: f.foreign})
	if report != nil {
		if err := writeBreak(out, say, name, state, report, err == nil); err != nil {
			return unwritten(err)
		}
	}
	if errors.Is(err, redlatch.ErrHeld) {
		return &outcome{code: exitHeld, event: "held", err: err, hint: "another client acquired it in the meantime: look again with redlatch show"}
	}
	return err
}

// shownUpTo is the highest token at the time when the holders were shown: a
// holder with a higher one came later. If no node remembers a token it is the
// time of the showing, by the median of the nodes' clocks, since tokens are
// based on those.
func shownUpTo(s *admin.LockState) redlatch.Token {
	if s.Fence != 0 {
		return s.Fence
	}
	var clocks []int64
	for _, n := range s.Nodes {
		if n.Err == nil {
			clocks = append(clocks, n.Reply.Now.UnixMicro())
		}
	}
	if len(clocks) == 0 {
		return 0
	}
	slices.Sort(clocks)
	return redlatch.Token(max(clocks[len(clocks)/2], 1))
}

func breakQuestion(s *admin.LockState) string {
	var b strings.Builder
	for _, h := range s.Holders {
		fmt.Fprintf(&b, "%q is held by %s%s, %s, on %d of %d nodes", s.Name, holderText(h), roleText(h), whenText(h), h.Nodes, len(s.Nodes))
		if h.Token != 0 {
			fmt.Fprintf(&b, "; token %s", number(h.Token))
		}
		b.WriteString(".\n")
	}
	b.WriteString(notStopped(s) + "\n")
	if n := len(together(s)); n > 1 {
		fmt.Fprintf(&b, "Break it for all %d holders? [y/N] ", n)
	} else {
		b.WriteString("Break it? [y/N] ")
	}
	return b.String()
}

// together returns the holders that hold the lock together: readers, or slots.
func together(s *admin.LockState) []redlatch.Holder {
	if all := holding(s); all[0].Shared || all[0].Slots > 0 {
		return all
	}
	return s.Holders[:1]
}

// notStopped is a warning: breaking a lock does not stop its holders.
func notStopped(s *admin.LockState) string {
	if len(together(s)) > 1 {
		return `The former holders are not stopped: they go on until they next ask the nodes, or
until the resource has seen a higher token and refuses theirs.`
	}
	return `The former holder is not stopped: it goes on until it next asks the nodes, or
until the resource has seen a higher token and refuses its own.`
}

type breakJSON struct {
	Event   string       `json:"event"`
	Name    string       `json:"name"`
	Token   string       `json:"token,omitempty"`
	Holders []holderJSON `json:"former_holders,omitempty"`
	Nodes   []answerJSON `json:"nodes,omitempty"`
}

type answerJSON struct {
	Node   string `json:"node"`
	Broken bool   `json:"broken"`
	Said   string `json:"said,omitempty"`
}

// writeBreak writes what each node answered.
func writeBreak(out io.Writer, say *reporter, name string, state *admin.LockState, report *admin.BreakReport, done bool) error {
	broken := 0
	answers := make([]answerJSON, len(report.Nodes))
	for i, n := range report.Nodes {
		answers[i] = answerJSON{Node: n.Node, Broken: n.Err == nil && n.Reply.Status == node.Granted}
		if answers[i].Broken {
			broken++
		} else {
			answers[i].Said = strings.TrimPrefix(n.String(), n.Node+": ")
		}
	}
	if say.format == "json" {
		line := breakJSON{Event: "broken", Name: name, Token: tokenText(report.Token), Holders: stateJSON(state, false).Holders, Nodes: answers}
		if !done {
			line.Event = "not_broken"
		}
		return writeJSON(out, line)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, a := range answers {
		if a.Broken {
			a.Said = "broken"
		}
		fmt.Fprintf(w, "%s\t%s\n", a.Node, a.Said)
	}
	w.Flush()
	if !done {
		_, err := fmt.Fprintf(out, "%q is not broken: only %d of %d nodes released it, and its holder may go on\n", name, broken, len(answers))
		return err
	}
	from := ""
	if all := together(state); len(all) > 1 {
		who := make([]string, len(all))
		for i, h := range all {
			who[i] = holderText(h)
		}
		from = fmt.Sprintf(", for %d holders: %s", len(all), strings.Join(who, ", "))
	}
	_, err := fmt.Fprintf(out, "%q is broken on %d of %d nodes%s; the next token is above %s\n%s\n", name, broken, len(answers), from, number(report.Token), notStopped(state))
	return err
}
