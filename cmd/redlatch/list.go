package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// listFlags are the flags of ls and show.
type listFlags struct {
	nodeFlags
	watch    bool
	interval time.Duration
}

func (f *listFlags) register(cmd *cobra.Command, say *reporter) {
	flags := cmd.Flags()
	flags.SortFlags = false
	f.nodeFlags.register(flags)
	flags.BoolVar(&f.watch, "watch", false, "show it again and again, until a signal comes")
	flags.DurationVar(&f.interval, "interval", time.Second, "with --watch: how long to `WAIT` in between")
	say.registerOutput(flags, "how it is shown: in columns, in more of them, or as JSON", "text", "wide", "json")
}

const unlisted = `A Redis node is listed by what redlatch keeps beside its locks: those of other
clients, and those taken without a token, are not found by ls. "redlatch show"
sees them.`

func newLs(say *reporter) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:   "ls [flags] [PREFIX]",
		Short: "List the locks that are held or waited for",
		Long: `List the locks that are held or waited for, with all names or those that begin
with PREFIX: who holds each, since when, in what time it expires unless it is
extended, how many wait, and how many nodes say so. Nodes may disagree, while
contenders split them or after one was away: a lock is held if a majority names
one holder, else the state is split or waited, or unknown if that depends on
nodes that do not answer. Of a lock with readers or slots ls says how many hold
it, and names the one that has held it longest: its are the times in the line.
Nothing is changed.

` + unlisted + `

Exit status: 0; 64 for a wrong command line; 69 if too few nodes answered, after
what the others said; 74 if stdout cannot be written.`,
		Example: `  redlatch ls
  redlatch ls -o wide deploy/
  redlatch ls --watch
  redlatch ls -o json | jq -r 'select(.waiting > 10) | .name'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(fmt.Errorf("there are %d arguments: ls takes one prefix", len(args)), "quote a prefix with spaces in it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			return f.run(cmd.OutOrStdout(), say, func(ctx context.Context, client *redlatch.Client, out io.Writer) error {
				survey, err := admin.New(client).List(ctx)
				if survey == nil {
					return err
				}
				for _, failed := range survey.Failed {
					if err == nil { // otherwise it names them all
						say.warn("", "%s does not answer: %s", failed.Node, message(failed.Err))
					}
				}
				var locks []admin.LockState
				for _, l := range survey.Locks {
					if strings.HasPrefix(l.Name, prefix) {
						locks = append(locks, l)
					}
				}
				return errors.Join(unwritten(writeLocks(out, say, locks)), err)
			})
		},
	}
	f.register(cmd, say)
	return cmd
}

func newShow(say *reporter) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Show one lock: its holder, who waits, what each node says",
		Long: `Show what every node says of the lock NAME: who holds it there and with which
token, in what time it expires unless it is extended, the fence, which is the
highest token that the node remembers, and who waits, in the order in which they
are served. Every reader and every slot is shown, and what each waiter waits
for: a reader's share, a slot, or the whole lock. It sees every lock, also those
of other clients. Nothing is changed. If it depends on nodes that do not answer,
the state is unknown, not free. Of a job that runs with --once it shows which
occurrences are done, and since when most nodes remember that.

Exit status: 0, whether or not it is held; 64 for a wrong command line; 69 if
too few nodes answered, after what the others said; 74 if stdout cannot be
written.`,
		Example: `  redlatch show nightly
  redlatch show --watch nightly
  redlatch show -o json nightly | jq .holders`,
		Args: nameArgs("show"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return named(args[0], f.run(cmd.OutOrStdout(), say, func(ctx context.Context, client *redlatch.Client, out io.Writer) error {
				state, err := admin.New(client).Show(ctx, args[0])
				if state == nil {
					return err
				}
				if say.format == "json" {
					return errors.Join(unwritten(writeJSON(out, stateJSON(state, true))), err)
				}
				return errors.Join(unwritten(writeState(out, state)), err)
			}))
		},
	}
	f.register(cmd, say)
	return cmd
}

// run shows the locks once, or repeatedly.
func (f *listFlags) run(out io.Writer, say *reporter, show func(context.Context, *redlatch.Client, io.Writer) error) error {
	if f.interval < 100*time.Millisecond || f.interval > time.Hour {
		return &redlatch.ConfigError{Field: "--interval", Value: f.interval, Bound: "from 100ms to 1h"}
	}
	client, err := f.client(redlatch.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilSignal()
	defer stop()
	if !f.watch {
		err := show(ctx, client, out)
		if end := ended(ctx); end != nil {
			return end
		}
		return err
	}
	return repeat(ctx, out, f.interval, func(out io.Writer) error {
		err := show(ctx, client, out)
		if errors.Is(err, redlatch.ErrConfig) {
			return err
		}
		if err != nil && ctx.Err() == nil && say.format != "json" {
			fmt.Fprintf(out, "%s\n", message(err)) // it may pass
		} else if err != nil && ctx.Err() == nil {
			say.warn("", "%s", message(err))
		}
		return nil
	})
}

// writeLocks writes a line for each lock.
func writeLocks(out io.Writer, say *reporter, locks []admin.LockState) error {
	if say.format == "json" {
		for i := range locks {
			if err := writeJSON(out, stateJSON(&locks[i], false)); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	wide := say.format == "wide"
	fmt.Fprint(w, "NAME\tSTATE\tHOLDER\tSINCE\tEXPIRES IN\tWAITING\tNODES")
	if wide {
		fmt.Fprint(w, "\tTOKEN\tFENCE\tEACH NODE")
	}
	fmt.Fprintln(w)
	for i := range locks {
		l := &locks[i]
		holder, since, left, token := "-", "-", "-", redlatch.Token(0)
		if len(l.Holders) > 0 {
			h := l.Holders[0]
			holder, left, token = columnText(h), leftText(h.Left), h.Token
			if !h.Since.IsZero() {
				since = agoText(h, time.DateTime)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s", harmless(l.Name), stateOf(l), holder, since, left, l.Waiting, votes(l))
		if wide {
			fmt.Fprintf(w, "\t%s\t%s\t%s", number(token), number(l.Fence), strings.Join(eachNode(l), "; "))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// stateOf is a lock's state in one word.
func stateOf(l *admin.LockState) string {
	switch {
	case l.Held:
		return "held"
	case answered(l) <= len(l.Nodes)/2, naming(l)+len(l.Nodes)-answered(l) > len(l.Nodes)/2:
		return "unknown" // together with the silent nodes, a holder may have a majority
	case len(l.Holders) > 0:
		return "split" // some nodes name a holder, but no majority names the same
	case l.Waiting > 0:
		return "waited"
	}
	return "free"
}

// answered is how many nodes answered for a lock.
func answered(l *admin.LockState) int {
	n := 0
	for i := range l.Nodes {
		if l.Nodes[i].Err == nil {
			n++
		}
	}
	return n
}

// naming is how many nodes name the first holder.
func naming(l *admin.LockState) int {
	if len(l.Holders) == 0 {
		return 0
	}
	return l.Holders[0].Nodes
}

// votes says how many nodes name the holder, of how many.
func votes(l *admin.LockState) string { return fmt.Sprintf("%d/%d", naming(l), len(l.Nodes)) }

func holderText(h redlatch.Holder) string {
	switch h.Kind {
	case redlatch.KindForeign:
		return "a key of type " + h.Owner
	case redlatch.KindPlain:
		return "another client, " + h.Owner
	}
	return harmless(h.Owner)
}

// columnText names the holders of a lock in a column: how many there are, if it
// is shared, and the first of them.
func columnText(h redlatch.Holder) string {
	text := holderText(h)
	if many := holdersText(h); many != "" {
		text = many + ": " + text
	}
	if h.Holders > 1 {
		text += ", …"
	}
	return text
}

// nodeHolder names the holder on a node, and how many others there are.
func nodeHolder(n admin.NodeListing) string {
	if others := len(n.Holders) - 1; others > 0 {
		return fmt.Sprintf("%s and %d more", harmless(n.Owner), others)
	}
	return harmless(n.Owner)
}

func leftText(d time.Duration) string {
	if d == node.NoExpiry {
		return "for ever"
	}
	return d.Round(100 * time.Millisecond).String()
}

// agoText says how long ago a holder got its lock.
func agoText(h redlatch.Holder, layout string) string {
	return fmt.Sprintf("%s (%v ago)", h.Since.Format(layout), h.Held.Round(time.Second))
}

// whenText says since when a holder has had its lock, if that is known, and
// when it ends.
func whenText(h redlatch.Holder) string {
	since := ""
	if !h.Since.IsZero() {
		since = "since " + agoText(h, time.RFC3339) + ", "
	}
	if h.Left == node.NoExpiry {
		return since + "with no expiry"
	}
	return since + "expires in " + leftText(h.Left) + " unless extended"
}

func number(t redlatch.Token) string {
	if t == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(t), 10)
}

// eachNode is the answer of each node, in a few words.
func eachNode(l *admin.LockState) []string {
	var said []string
	for _, n := range l.Nodes {
		switch {
		case n.Err != nil:
			said = append(said, n.Node+" "+message(n.Err))
		case n.Owner == "":
			said = append(said, n.Node+" free")
		default:
			said = append(said, n.Node+" "+nodeHolder(n)+" "+leftText(n.Reply.Left))
		}
	}
	return said
}

// whomTheyName says which holder the nodes that answer name.
func whomTheyName(s *admin.LockState) string {
	if n := naming(s); n > 0 {
		return fmt.Sprintf("%d of those name %s", n, holderText(s.Holders[0]))
	}
	return "none of those names a holder"
}

// marksShown is how many marks are shown in words.
const marksShown = 5

// marksText says which occurrences of a job are done, and since when that is
// remembered. It is empty for a name without occurrences.
func marksText(s *admin.LockState) string {
	if len(s.Marks) == 0 && s.MarksSince.IsZero() {
		return ""
	}
	var text []string
	for _, m := range s.Marks[:min(len(s.Marks), marksShown)] {
		text = append(text, fmt.Sprintf("%s (%d of %d nodes)", harmless(m.Occurrence), m.Nodes, len(s.Nodes)))
	}
	switch {
	case len(s.Marks) == 0:
		text = append(text, "nothing")
	case len(s.Marks) > marksShown:
		text = append(text, "…")
	}
	since := "remembered by too few nodes"
	if !s.MarksSince.IsZero() {
		since = "remembered since " + s.MarksSince.Format(time.RFC3339)
	}
	return strings.Join(text, ", ") + "; " + since
}

// writeState writes all that is known of one lock.
func writeState(out io.Writer, s *admin.LockState) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "name\t%s\n", harmless(s.Name))
	switch stateOf(s) {
	case "held":
		if many := holdersText(s.Holders[0]); many != "" {
			fmt.Fprintf(w, "state\theld: %s\n", many)
			break
		}
		fmt.Fprintf(w, "state\theld, on %d of %d nodes\n", s.Holders[0].Nodes, len(s.Nodes))
	case "split":
		fmt.Fprintf(w, "state\tsplit: no majority of the %d nodes names the same holder\n", len(s.Nodes))
	case "unknown":
		fmt.Fprintf(w, "state\tunknown: only %d of %d nodes answer, and %s\n", answered(s), len(s.Nodes), whomTheyName(s))
	case "waited":
		fmt.Fprint(w, "state\tfree, and waited for\n")
	default:
		fmt.Fprint(w, "state\tfree\n")
	}
	for _, h := range s.Holders {
		fmt.Fprintf(w, "holder\t%s%s, %s, on %d of %d nodes\n", holderText(h), roleText(h), whenText(h), h.Nodes, len(s.Nodes))
		if h.Token != 0 {
			fmt.Fprintf(w, "token\t%s\n", number(h.Token))
		}
	}
	switch {
	case s.Fence == 0 || slices.ContainsFunc(s.Holders, func(h redlatch.Holder) bool { return h.Token == s.Fence }):
	case len(s.Holders) > 0:
		fmt.Fprintf(w, "fence\t%s, raised by somebody who gave up, or of an earlier holder\n", number(s.Fence))
	default:
		fmt.Fprintf(w, "fence\t%s: the next token is above it\n", number(s.Fence))
	}
	fmt.Fprintf(w, "waiting\t%d\n", s.Waiting)
	for i, q := range s.Waiters {
		fmt.Fprintf(w, "  %d.\t%s%s, since %s, on %d of %d nodes\n", i+1, harmless(q.Owner), wishText(s, q), q.Since.UTC().Format(time.RFC3339), q.Nodes, len(s.Nodes))
	}
	if more := s.Waiting - len(s.Waiters); more > 0 && len(s.Waiters) > 0 {
		fmt.Fprintf(w, "  …\tand %d more\n", more)
	}
	if done := marksText(s); done != "" {
		fmt.Fprintf(w, "done\t%s\n", done)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "NODE\tHOLDER\tEXPIRES IN\tTOKEN\tFENCE\tWAITING")
	if answered(s) < len(s.Nodes) {
		fmt.Fprint(w, "\tERROR")
	}
	fmt.Fprintln(w)
	for _, n := range s.Nodes {
		switch {
		case n.Err != nil:
			fmt.Fprintf(w, "%s\tunknown\t-\t-\t-\t-\t%s\n", n.Node, message(n.Err))
		case n.Owner == "":
			fmt.Fprintf(w, "%s\t-\t-\t-\t%s\t%d\n", n.Node, number(n.Reply.Fence), n.Waiting)
		default:
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\n", n.Node, nodeHolder(n), leftText(n.Reply.Left), number(n.Token), number(n.Reply.Fence), n.Waiting)
		}
	}
	return w.Flush()
}
