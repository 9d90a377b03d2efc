package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

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
		Long: `Force-release the lock NAME, for all of its holders: for when one hangs. It shows
the holders and asks. A client that acquires the lock after that keeps it.

The former holder is not stopped: stop it first if you can. It goes on until it next
asks the nodes, within a third of its TTL, or until a resource that checks tokens
refuses its own: the next holder's token is above it.`,
		Example: `  redlatch break --yes nightly`,
		Args:    nameArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.about(args[0], f.run(cmd, say, args[0]))
		},
	}
	flags := cmd.Flags()
	f.register(flags, say)
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.foreign, "foreign", false, "also remove a key that is no plain lock, such as Redisson's hash")
	say.registerJSON(flags, "write JSON to stdout instead of text")
	return cmd
}

func (f *breakFlags) run(cmd *cobra.Command, say *reporter, name string) error {
	return f.withClient(operatorTimeout, func(ctx context.Context, client *redlatch.Client) error {
		state, err := admin.New(client).Show(ctx, name)
		switch {
		case ctx.Err() != nil:
			return signalled(ctx, errUnchanged)
		case err != nil:
			return err
		case len(state.Holders) == 0:
			return say.print(cmd.OutOrStdout(), fields{}.add("event", "free").add("name", name), fmt.Sprintf("%q is not held\n", name))
		case state.Holders[0].Kind == redlatch.KindForeign && !f.foreign:
			return &outcome{code: exitHeld, event: "held", err: &redlatch.HeldError{Name: name, Holders: state.Holders},
				hint: "add --foreign to remove a key that is no plain lock"}
		case !f.yes:
			err = confirm(ctx, cmd.InOrStdin(), breakQuestion(state))
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return signalled(ctx, errUnchanged)
		}
		report, err := admin.New(client).Break(ctx, name, &admin.BreakOptions{Seen: state.Seen(), Foreign: f.foreign})
		if report != nil {
			if err := writeBreak(cmd.OutOrStdout(), say, name, state, report, err == nil); err != nil {
				return err
			}
		}
		if errors.Is(err, redlatch.ErrHeld) {
			return &outcome{code: exitHeld, event: "held", err: err, hint: "another client acquired it in the meantime: look again with redlatch show"}
		}
		return err
	})
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

// together returns the holders that hold the lock together: of readers, or slots,
// those that a majority names; all that are named, if none has one.
func together(s *admin.LockState) []redlatch.Holder {
	switch h := s.Holders[0]; {
	case s.Held:
		return s.Holders[:h.Holders]
	case h.Shared || h.Slots > 0:
		return s.Holders
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

// writeBreak writes what each node answered.
func writeBreak(out io.Writer, say *reporter, name string, state *admin.LockState, report *admin.BreakReport, done bool) error {
	broken := 0
	var answers []fields
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, n := range report.Nodes {
		is, said := n.Err == nil && n.Reply.Status == node.Granted, strings.TrimPrefix(n.String(), n.Node+": ")
		if is {
			broken, said = broken+1, ""
		}
		answers = append(answers, fields{}.add("node", n.Node).add("broken", is).with("said", said))
		fmt.Fprintf(w, "%s\t%s\n", n.Node, cmp.Or(said, "broken"))
	}
	w.Flush()
	event := "broken"
	if done {
		from := ""
		if all := together(state); len(all) > 1 {
			var who []string
			for _, h := range all {
				who = append(who, holderText(h))
			}
			from = fmt.Sprintf(", for %d holders: %s", len(all), strings.Join(who, ", "))
		}
		fmt.Fprintf(&text, "%q is broken on %d of %d nodes%s; the next token is above %s\n%s\n", name, broken, len(answers), from, number(report.Token), notStopped(state))
	} else {
		event = "not_broken"
		fmt.Fprintf(&text, "%q is not broken: only %d of %d nodes released it, and its holder may go on\n", name, broken, len(answers))
	}
	return say.print(out, fields{}.add("event", event).add("name", name).with("token", report.Token).
		with("former_holders", holdersJSON(state.Holders)).with("nodes", answers), text.String())
}
