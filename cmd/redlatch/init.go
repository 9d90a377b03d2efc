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
	"github.com/redlatch/redlatch/cmd/internal/seconds"
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
		Short: "Mark the nodes and wait until they are trusted",
		Long: `Mark the nodes for the membership in --nodes, wait until they are trusted, and
print the state of each.

A node without a marker, or with one from before a restart or promotion, may have
forgotten locks. It is quarantined until those have expired: a bit longer than
--max-ttl, 32 s by default. Then it is in service again. init waits for that and
shows the remaining time; with --no-wait it returns at once. A node that is
already marked is not changed, so init can be run at any time.

Use it for new servers, and for servers that have all lost their data: a lock
from before may still be held. If the locks had a longer TTL than 30 s, give that
as --max-ttl.

--assume-fresh trusts the nodes at once, and is for tests and brand-new servers
only. After a loss of data it lets a second holder in. It asks first, or needs
--yes without a terminal, and fails if the nodes show earlier use: a marker, a
lock, or a token.

The marker names the membership. A node refuses a client with another
membership, since two memberships can each have a majority. To change it, stop
nothing, and run init once with the new membership in --nodes and the old one in
--former. Locks of the old membership expire, its waiters get an error, and after
the quarantine the new membership grants. Most of the former nodes must answer,
and all new ones.

The nodes are first barred: they grant nothing. If the change stops half way, the
nodes that it reached stay barred, and init shows them so; the others serve the
old membership if they are enough. Run the same command again to finish; or go
back, with the old membership in --nodes and the new one in --former.

A server that was removed from a membership keeps its marker, and refuses clients
with any other. To use it elsewhere, run init with --retired and its new
membership in --nodes. A server that is still in the membership of its marker is
refused.

Behind Sentinel, or wherever a replica may replace a master, give --replicas: a
master with fewer replicas online grants and extends nothing. So a master that is
cut off together with a holder stops before the promoted replica grants; without
it both go on. Give the number of all replicas: with fewer, one that changes sides
unseen lets a second holder in.`,
		Example: `  # three servers, new ones or after a loss of all data
  redlatch init --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # what state are they in?
  redlatch init --no-wait --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # three servers that a test has just started
  redlatch init --assume-fresh --yes --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # c was removed from its membership, and is to serve on its own
  redlatch init --retired --nodes redis://c:6379

  # c is replaced by d
  redlatch init --nodes redis://a:6379,redis://b:6379,redis://d:6379 --former redis://a:6379,redis://b:6379,redis://c:6379

  # a master with two replicas behind Sentinel, on three hosts with a sentinel each
  redlatch init --replicas 2 --nodes redis+sentinel://a:26379+b:26379+c:26379/main`,
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
	flags.StringArrayVar(&f.former, "former", nil, "the `addresses` of the former membership, to change it")
	flags.BoolVar(&f.retired, "retired", false, "the nodes were removed from their membership: mark them for this one")
	seconds.Var(flags, &f.maxTTL, "max-ttl", "", 0, "the longest TTL of a lock: `DURATION`; the quarantine is a bit longer (default 30s, or as the nodes are marked)")
	seconds.Var(flags, &f.window, "window", "", 0, "maximum clock skew: `DURATION` (default 10s, or as the nodes are marked)")
	flags.IntVar(&f.replicas, "replicas", replicasOpen, "each node grants and extends only with `N` replicas online (default as the nodes are marked, else 0)")
	flags.Lookup("replicas").DefValue = "0" // so that help shows no default of its own: the text states it
	seconds.Var(flags, &f.replicaLag, "replica-lag", "", 0, "a replica counts as online for `DURATION` after its last contact, in whole seconds; it prolongs the quarantine by that and 2s (default 2s, or as the nodes are marked)")
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
	view := say.showQuarantine()
	states, err := admin.New(client).Init(ctx, &admin.InitOptions{
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
