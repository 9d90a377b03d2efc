package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// stateOf is a lock's state in one word.
func stateOf(l *admin.LockState) string { return string(l.State()) }

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

func number(t redlatch.Token) string { return cmp.Or(tokenText(t), "-") }

// whomTheyName says which holder the nodes that answer name.
func whomTheyName(s *admin.LockState) string {
	if n := s.Naming(); n > 0 {
		return fmt.Sprintf("%d of those name %s", n, holderText(s.Holders[0]))
	}
	return "none of those names a holder"
}

// completedShown is how many completed occurrences are shown in words.
const completedShown = 5

// completedText says which occurrences of a job are completed, and since when that is
// remembered. It is empty for a name without occurrences.
func completedText(s *admin.LockState) string {
	if len(s.Completed) == 0 && s.CompletedSince.IsZero() {
		return ""
	}
	var text []string
	for _, m := range s.Completed[:min(len(s.Completed), completedShown)] {
		text = append(text, fmt.Sprintf("%s (%d of %d nodes)", harmless(m.Occurrence), m.Nodes, len(s.Nodes)))
	}
	switch {
	case len(s.Completed) == 0:
		text = append(text, "nothing")
	case len(s.Completed) > completedShown:
		text = append(text, "…")
	}
	since := "remembered by too few nodes"
	if !s.CompletedSince.IsZero() {
		since = "remembered since " + s.CompletedSince.Format(time.RFC3339)
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
		fmt.Fprintf(w, "state\tunknown: only %d of %d nodes answer, and %s\n", s.Answered(), len(s.Nodes), whomTheyName(s))
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
		fmt.Fprintf(w, "fence\t%s, raised by an abandoned attempt, or by an earlier holder\n", number(s.Fence))
	default:
		fmt.Fprintf(w, "fence\t%s: the next token is above it\n", number(s.Fence))
	}
	if s.Broken != 0 {
		fmt.Fprintf(w, "broken\ttaken from its holder with token %s\n", number(s.Broken))
	}
	fmt.Fprintf(w, "waiting\t%s\n", count(s.Waiting, "client"))
	for i, q := range s.Waiters {
		fmt.Fprintf(w, "  %d.\t%s%s, since %s, on %d of %d nodes\n", i+1, harmless(q.Owner), wishText(s, q), q.Since.UTC().Format(time.RFC3339), q.Nodes, len(s.Nodes))
	}
	if more := s.Waiting - len(s.Waiters); more > 0 && len(s.Waiters) > 0 {
		fmt.Fprintf(w, "  …\tand %d more\n", more)
	}
	if done := completedText(s); done != "" {
		fmt.Fprintf(w, "done\t%s\n", done)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "NODE\tHOLDER\tEXPIRES IN\tTOKEN\tFENCE\tWAITING CLIENTS")
	if s.Answered() < len(s.Nodes) {
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

func holdersJSON(holders []redlatch.Holder) []fields {
	all := make([]fields, 0, len(holders))
	for _, h := range holders {
		who := fields{}.add("owner", h.Owner).add("kind", string(h.Kind)).with("token", h.Token).share(h.Shared, h.Slots, h.Slot)
		if h.Holders > 1 { // how many hold it together
			who = who.add("holders", h.Holders)
		}
		if !h.Since.IsZero() {
			who = who.add("since", h.Since).add("held", h.Held)
		}
		if h.Left == node.NoExpiry {
			who = who.add("expires_in_ms", nil)
		} else {
			who = who.add("expires_in", h.Left)
		}
		all = append(all, who.add("nodes", h.Nodes))
	}
	return all
}

// stateJSON is a lock as a line of JSON. Token is that of the first holder. Fence
// is present if it differs: other clients raised it, or nobody holds the lock.
func stateJSON(s *admin.LockState, waiters bool) fields {
	f := fields{}.add("name", s.Name).add("state", stateOf(s)).add("holders", holdersJSON(s.Holders))
	var token redlatch.Token
	if len(s.Holders) > 0 {
		token = s.Holders[0].Token
		f = f.with("token", token)
	}
	if s.Fence != token {
		f = f.with("fence", s.Fence)
	}
	f = f.with("broken", s.Broken).add("waiting", s.Waiting)
	if waiters {
		var all []fields
		for _, w := range s.Waiters {
			all = append(all, fields{}.add("owner", w.Owner).with("shared", w.Shared).with("slots", w.Slots).add("since", w.Since).add("nodes", w.Nodes))
		}
		f = f.with("waiters", all)
	}
	var completed, nodes []fields
	for _, m := range s.Completed {
		completed = append(completed, fields{}.add("occurrence", m.Occurrence).add("until", m.Until).add("nodes", m.Nodes))
	}
	for _, n := range s.Nodes {
		said := fields{}.add("node", n.Node).with("owner", n.Owner)
		if len(n.Holders) > 1 {
			said = said.add("holders", len(n.Holders))
		}
		if n.Owner != "" && n.Reply.Left != node.NoExpiry {
			said = said.add("expires_in", n.Reply.Left)
		}
		said = said.with("token", n.Token)
		if n.Reply.Fence != n.Token {
			said = said.with("fence", n.Reply.Fence)
		}
		said = said.add("waiting", n.Waiting)
		if n.Err != nil {
			said = said.add("error", message(n.Err))
		}
		nodes = append(nodes, said)
	}
	return f.with("completed", completed).with("completed_since", s.CompletedSince).add("nodes", nodes)
}
