package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/internal/flag"
	"github.com/redlatch/redlatch/internal/terminal"
	"github.com/redlatch/redlatch/node"
)

// initFlags are the flags of init.
type initFlags struct {
	nodeFlags
	assumeFresh bool
	yes         bool
	noWait      bool
	former      []string
	maxTTL      time.Duration
	replicas    int
}

func newInit(say *reporter) *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Mark the nodes and wait until they are trusted",
		Long: `Mark the nodes for the membership in --nodes, wait until they are trusted, and print
the state of each. A node that is already marked is not changed.

A node without a marker, or with one from before a restart, may have forgotten
locks. It is quarantined until those have expired: a bit longer than --max-ttl, 32 s
by default. --assume-fresh skips this for brand-new servers.

A node refuses clients with another membership. To change it, run init with the new
membership in --nodes and the old one in --former: locks of the old membership
expire first. If that stops half way, the nodes that it reached are barred: run the
same command again. A server that was removed from its membership is its own former
one: give its address in --former too.

Behind Sentinel give --replicas, the number of all replicas: otherwise a master that
is cut off together with a holder grants beside the promoted replica.`,
		Example: `  redlatch init --nodes redis://a:6379,redis://b:6379,redis://c:6379
  # c is replaced by d
  redlatch init --nodes redis://a,redis://b,redis://d --former redis://a,redis://b,redis://c`,
		Args: noArgs("give addresses in --nodes"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, say) },
	}
	flags := cmd.Flags()
	f.register(flags, say)
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait until the nodes are trusted")
	flags.BoolVar(&f.assumeFresh, "assume-fresh", false, "trust the nodes at once: they are brand-new. Dangerous after a loss of data, when locks may still be held")
	flags.BoolVar(&f.yes, "yes", false, "with --assume-fresh: do not ask")
	flags.StringArrayVar(&f.former, "former", nil, "the `addresses` of the former membership, to change it")
	flag.Duration(flags, &f.maxTTL, "max-ttl", "", 0, "the longest TTL of a lock: `DURATION`; the quarantine is a bit longer (default 30s, or as the nodes are marked)")
	flags.IntVar(&f.replicas, "replicas", replicasOpen, "each node grants and extends only with `N` replicas online; the quarantine is 4s longer (default as the nodes are marked, else 0)")
	flags.Lookup("replicas").DefValue = "0" // so that help shows no default of its own: the text states it
	say.register(flags)
	return cmd
}

func (f *initFlags) run(cmd *cobra.Command, say *reporter) error {
	ctx, stop := untilSignal()
	defer stop()
	nodes, err := f.open()
	if err != nil {
		return err
	}
	var former []redlatch.Node
	if addresses := split(f.former...); len(addresses) > 0 {
		if former, err = f.openAll(addresses); err != nil {
			closeAll(nodes)
			return err
		}
		defer closeAll(former)
	}
	opts := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: f.maxTTL}, NodeTimeout: 2 * time.Second}
	switch {
	case f.replicas == 0:
		opts.Replicas = redlatch.NoReplicas
	case f.replicas != replicasOpen:
		opts.Replicas = f.replicas
	}
	f.apply(&opts)
	client, err := redlatch.New(nodes, &opts)
	if err != nil {
		return err
	}
	defer client.Close()
	if f.assumeFresh && !f.yes && len(former) == 0 {
		if err := confirm(ctx, cmd.InOrStdin(), freshQuestion); err != nil {
			return err
		}
	}
	view := &quarantineView{say: say, screen: say.screen()}
	states, err := admin.New(client).Init(ctx, &admin.InitOptions{
		AssumeFresh: f.assumeFresh, Former: former, Wait: !f.noWait, Progress: view.progress,
	})
	view.screen.Clear()
	half := slices.ContainsFunc(states, func(s admin.NodeState) bool { return s.Reason == node.ReasonBarred })
	if len(states) > 0 && (half || !errors.Is(err, redlatch.ErrConfig)) {
		writeStates(cmd.OutOrStdout(), say, states)
	}
	if ctx.Err() != nil && err != nil {
		if !slices.ContainsFunc(states, func(s admin.NodeState) bool { return s.Err != nil }) {
			err = errors.New("stopped waiting: the nodes are marked, and will be trusted when quarantine ends")
		}
		return signalled(ctx, err)
	}
	if removed := without(former, nodes); err == nil && len(removed) > 0 && !say.quiet {
		say.tell(slog.LevelInfo, "removed", "", fmt.Sprintf(
			"no longer a member: %s; stop such a server for good, or first take the former list away from every client: servers that come back empty can be put into service again by a client with that list",
			strings.Join(removed, " ")), fields{}.add("nodes", removed))
	}
	return err
}

// without returns the names of the nodes that are not among others.
func without(nodes, others []redlatch.Node) (names []string) {
	for _, n := range nodes {
		if !slices.ContainsFunc(others, func(o redlatch.Node) bool { return o.String() == n.String() }) {
			names = append(names, n.String())
		}
	}
	return names
}

// replicasOpen is the value of --replicas if the flag is missing.
const replicasOpen = -1

func writeStates(out io.Writer, say *reporter, states []admin.NodeState) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range states {
		if say.json {
			writeJSON(out, nodeJSON(s))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\n", s.Node, describe(s))
	}
	w.Flush()
}

func describe(s admin.NodeState) string {
	switch {
	case s.Reason == node.ReasonBarred:
		return "barred: it grants nothing until the membership change is finished"
	case s.Err != nil:
		return message(s.Err)
	case s.Left > 0:
		return fmt.Sprintf("quarantined for another %v", s.Left.Round(time.Millisecond))
	case !s.Trusted:
		return "not marked"
	}
	text := fmt.Sprintf("trusted; max TTL %v, window %v, quarantine %v", s.Marked.MaxTTL, s.Marked.Window, s.Marked.Quarantine)
	if s.Marked.Replicas > 0 {
		text += fmt.Sprintf(", %d of %d required replicas online (lag %v or less)", s.Replicas, s.Marked.Replicas, s.Marked.ReplicaLag)
	}
	return text
}

// nodeJSON is the state of a node for programs.
func nodeJSON(s admin.NodeState) fields {
	line := fields{}.add("node", s.Node).add("trusted", s.Trusted).with("left", s.Left).with("reason", s.Reason)
	if g := s.Marked; g != nil {
		line = line.with("membership", g.Membership).add("max_ttl", g.MaxTTL).add("window", g.Window).add("quarantine", g.Quarantine)
		if g.Replicas > 0 { // required
			line = line.add("replicas", g.Replicas).add("replica_lag", g.ReplicaLag)
		}
	}
	if s.Err != nil {
		line = line.add("error", message(s.Err))
	}
	return line
}

// quarantineLine is how often a line is written while nodes are in quarantine
// and there is no terminal for a bar.
const quarantineLine = 10 * time.Second

// quarantineView shows how long init still has to wait: as a bar on a terminal,
// elsewhere as a line now and then.
type quarantineView struct {
	say    *reporter
	screen *terminal.Screen // nil if there is no terminal
	whole  time.Duration    // the longest wait that was seen
	said   time.Time
}

// progress gets the states of the nodes.
func (v *quarantineView) progress(states []admin.NodeState) {
	nodes, left := 0, time.Duration(0)
	for _, s := range states {
		if s.Err != nil || !s.Trusted {
			nodes++
		}
		left = max(left, s.Left)
	}
	v.whole = max(v.whole, left)
	switch text := "waiting for " + count(nodes, "node"); {
	case v.say.quiet:
	case v.screen != nil:
		bar := terminal.Bar(20, 1-left.Seconds()/max(v.whole.Seconds(), 0.001))
		v.screen.Draw(fmt.Sprintf("redlatch: %s [%s] %v left", text, bar, left.Round(time.Second)))
	case v.said.IsZero() || time.Since(v.said) >= quarantineLine && left >= time.Second:
		v.said = time.Now()
		v.say.tell(slog.LevelInfo, "waiting", "", fmt.Sprintf("%s (%v left)", text, left.Round(time.Second)), fields{}.add("left", left))
	}
}

// freshQuestion is what everyone must know who trusts nodes at once.
const freshQuestion = `Trusting these servers at once is safe only if they are brand-new. If they lost
their data, a lock from before may still be held, and there will be two holders:
answer no, and run init without --assume-fresh, which waits until that lock has
expired.
Are all of them brand-new? [y/N] `
