package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
)

// initFlags are the flags of init.
type initFlags struct {
	nodeFlags
	assumeFresh bool
	yes         bool
	noWait      bool
	former      []string
	retired     bool
	maxTTL      time.Duration
	window      time.Duration
	replicas    int
	replicaLag  time.Duration
}

func newInit(say *reporter) *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Mark the nodes, and wait until they are trusted",
		Long: `Mark the nodes for the list that is given, wait until they are trusted, and say
how each of them stands.

A node that carries no marker, or one from before it was restarted or promoted,
may have forgotten locks. It is quarantined until those have run out: a bit longer
than --max-ttl, 32 s by default. Then it takes part by itself. init waits for that
and shows for how long yet; with --no-wait it returns at once. A node that is
marked already stays as it is, so init can be run at any time.

This is the way for new servers, and for servers that have all lost their data: a
lock from before may still be held. If locks were allowed to be longer than 30 s,
give the --max-ttl of then.

--assume-fresh has the nodes trusted at once, and is for tests and brand-new
servers alone. After a loss of data it lets a second holder in. It asks first, or
needs --yes where there is no terminal, and is refused where anything is left that
shows an earlier service: a marker, a lock, or what is kept beside one.

The marker names the list of nodes. A client with another list is refused, since
two lists can each have a majority of their own. To change the list, stop
nothing, and run init once with the new list in --nodes and the old one in
--former. Locks by the old list run out, those who wait by it are told, and after
the quarantine the new list grants. Most of the former nodes must answer, and all
new ones.

The nodes are first barred: they grant nothing, to whichever list. If the change
stops half way those that were reached stay barred, and are shown so; the rest
serve the old list as far as they are enough. Run the same command again, and it
is finished; or go back, with the old list in --nodes and the new one in
--former.

A server that was taken off a list keeps that list's marker, and clients with
any other list are refused there. To use it for something else, run init with
--retired and its new list in --nodes. It is refused for a server that is on the
list that it is marked for.

Behind Sentinel, or wherever a replica may take a master's place, give
--replicas: a master that has fewer of them online grants and extends nothing.
So one that is cut off together with a holder stops before the promoted replica
grants; without it both go on. Give the number of all replicas, or, where the
sentinels run on the same hosts, one more than can stay on the smaller side of a
network that is cut in two: 1 for three hosts.`,
		Example: `  # three servers, new ones or after a loss of all data
  redlatch init --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # how do they stand?
  redlatch init --no-wait --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # three servers that a test has just started
  redlatch init --assume-fresh --yes --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # c, which is on no list any more, is to serve on its own
  redlatch init --retired --nodes redis://c:6379

  # c is replaced by d
  redlatch init --nodes redis://a:6379,redis://b:6379,redis://d:6379 --former redis://a:6379,redis://b:6379,redis://c:6379

  # a master with two replicas behind Sentinel, on three hosts with a sentinel each
  redlatch init --replicas 1 --nodes redis+sentinel://a:26379+b:26379+c:26379/main`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := strayAddress(args); err != nil {
				return err
			}
			if len(args) > 0 {
				return usageError(fmt.Errorf("init takes no argument, and %q is one", args[0]), "give addresses in --nodes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, say) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait until the nodes are trusted")
	flags.SetAnnotation("no-wait", ownMeaning, []string{"it is not about locks"})
	flags.BoolVar(&f.assumeFresh, "assume-fresh", false, "trust the nodes at once: they are brand-new. Dangerous after a loss of data, when locks may still be held")
	flags.BoolVar(&f.yes, "yes", false, "with --assume-fresh: do not ask")
	flags.StringArrayVar(&f.former, "former", nil, "the `addresses` of the list as it was, when the list is being changed")
	flags.BoolVar(&f.retired, "retired", false, "the nodes were taken off the list that they are marked for: mark them for this one")
	flags.DurationVar(&f.maxTTL, "max-ttl", 0, "the longest TTL that a lock may have: `DURATION`, from which the quarantine follows (default 30s, or as the nodes are marked)")
	flags.DurationVar(&f.window, "window", 0, "how far clocks may be apart: `DURATION` (default 10s, or as the nodes are marked)")
	flags.IntVar(&f.replicas, "replicas", replicasOpen, "how many replicas of each node must be online for it to grant and extend: `N` (default as the nodes are marked, else 0)")
	flags.Lookup("replicas").DefValue = "0" // so that help shows no default of its own: the text states it
	flags.DurationVar(&f.replicaLag, "replica-lag", 0, "how long ago such a replica may have been heard from: `DURATION` in whole seconds, by which and 2s the quarantine is longer (default 2s, or as the nodes are marked)")
	say.register(flags)
	return cmd
}

func (f *initFlags) run(cmd *cobra.Command, say *reporter) error {
	out := cmd.OutOrStdout()
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
	opts := redlatch.Options{MaxTTL: f.maxTTL, TokenWindow: f.window, ReplicaLag: f.replicaLag, NodeTimeout: 2 * time.Second}
	switch {
	case f.replicas == 0:
		opts.Replicas = redlatch.NoReplicas
	case f.replicas != replicasOpen:
		opts.Replicas = f.replicas
	}
	f.apply(&opts)
	client, err := redlatch.New(nodes, opts)
	if err != nil {
		return err
	}
	defer client.Close()
	if f.assumeFresh && !f.yes && len(former) == 0 {
		if err := confirm(ctx, cmd.InOrStdin(), freshQuestion, "the nodes are brand-new"); err != nil {
			return err
		}
	}
	view := say.showQuarantine()
	states, err := admin.New(client).Init(ctx, admin.InitOptions{
		AssumeFresh: f.assumeFresh, Former: former, Retired: f.retired, Wait: !f.noWait, Progress: view.progress,
	})
	view.stop()
	half := slices.ContainsFunc(states, func(s admin.NodeState) bool { return s.Reason == node.ReasonBarred })
	if len(states) > 0 && (half || !errors.Is(err, redlatch.ErrConfig)) {
		if say.format == "json" {
			writeStatesJSON(out, states)
		} else {
			writeStates(out, states)
		}
	}
	if ctx.Err() != nil && err != nil {
		return interruptedInit(ctx, states, err)
	}
	return err
}

// replicasOpen is the value of --replicas if the flag is missing.
const replicasOpen = -1

func writeStates(out io.Writer, states []admin.NodeState) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range states {
		fmt.Fprintf(w, "%s\t%s\n", s.Node, describe(s))
	}
	w.Flush()
}

func describe(s admin.NodeState) string {
	switch {
	case s.Reason == node.ReasonBarred:
		return "barred: it grants nothing until the change of the list is finished"
	case s.Err != nil:
		return message(s.Err)
	case s.Left > 0:
		return fmt.Sprintf("in quarantine for %v yet", s.Left.Round(time.Millisecond))
	case !s.Trusted:
		return "not marked"
	}
	text := fmt.Sprintf("trusted; max TTL %v, window %v, quarantine %v", s.Marked.MaxTTL, s.Marked.Window, s.Marked.Quarantine)
	if s.Marked.Replicas > 0 {
		text += fmt.Sprintf(", %d of %d required replicas online (lag %v or less)", s.Replicas, s.Marked.Replicas, s.Marked.ReplicaLag)
	}
	return text
}

func writeStatesJSON(out io.Writer, states []admin.NodeState) {
	type state struct {
		Node       string   `json:"node"`
		Trusted    bool     `json:"trusted"`
		Left       *float64 `json:"left_ms,omitempty"`
		Reason     string   `json:"reason,omitempty"`
		List       string   `json:"list,omitempty"`
		MaxTTL     *float64 `json:"max_ttl_ms,omitempty"`
		Window     *float64 `json:"window_ms,omitempty"`
		Quarantine *float64 `json:"quarantine_ms,omitempty"`
		Replicas   int      `json:"replicas,omitempty"` // required
		ReplicaLag *float64 `json:"replica_lag_ms,omitempty"`
		Error      string   `json:"error,omitempty"`
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, s := range states {
		line := state{Node: s.Node, Trusted: s.Trusted, Reason: s.Reason}
		if s.Left > 0 {
			line.Left = ms(s.Left)
		}
		if g := s.Marked; g != nil {
			line.List, line.MaxTTL, line.Window, line.Quarantine = g.List, ms(g.MaxTTL), ms(g.Window), ms(g.Quarantine)
			if line.Replicas = g.Replicas; g.Replicas > 0 {
				line.ReplicaLag = ms(g.ReplicaLag)
			}
		}
		if s.Err != nil {
			line.Error = message(s.Err)
		}
		enc.Encode(line)
	}
}
