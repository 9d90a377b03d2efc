package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
)

// initFlags are the flags of init.
type initFlags struct {
	nodeFlags
	assumeFresh bool
	former      []string
	retired     bool
	maxTTL      time.Duration
	window      time.Duration
}

func newInit(say *reporter) *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Mark the nodes, and check their list",
		Long: `Mark the nodes for the list that is given, and say how each of them stands.

A node that carries no marker, or one from before it was restarted or promoted,
may have forgotten locks. It sits out, in quarantine, until those have run out:
a bit longer than --max-ttl. Then it takes part by itself. A node that is marked
already stays as it is, so init can be run at any time to look.

New servers have nothing to forget: --assume-fresh declares that, and they are
trusted at once. It is refused if any of them is, or has been, in service.

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
list that it is marked for.`,
		Example: `  # three new servers
  redlatch init --assume-fresh --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # how do they stand?
  redlatch init --nodes redis://a:6379,redis://b:6379,redis://c:6379

  # c, which is on no list any more, is to serve on its own
  redlatch init --retired --nodes redis://c:6379

  # c is replaced by d
  redlatch init --nodes redis://a:6379,redis://b:6379,redis://d:6379 --former redis://a:6379,redis://b:6379,redis://c:6379`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(fmt.Errorf("init takes no argument, and %q is one", args[0]), "give addresses in --nodes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.OutOrStdout(), say) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.register(flags)
	flags.BoolVar(&f.assumeFresh, "assume-fresh", false, "the nodes are new and have nothing to forget: trust them at once")
	flags.StringArrayVar(&f.former, "former", nil, "the `addresses` of the list as it was, when the list is being changed")
	flags.BoolVar(&f.retired, "retired", false, "the nodes were taken off the list that they are marked for: mark them for this one")
	flags.DurationVar(&f.maxTTL, "max-ttl", 0, "the longest TTL that a lock may have: `DURATION`, from which the quarantine follows (default 30s, or as the nodes are marked)")
	flags.DurationVar(&f.window, "window", 0, "how far clocks may be apart: `DURATION` (default 10s, or as the nodes are marked)")
	say.register(flags)
	return cmd
}

func (f *initFlags) run(out io.Writer, say *reporter) error {
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
	opts := redlatch.Options{MaxTTL: f.maxTTL, TokenWindow: f.window, NodeTimeout: 2 * time.Second}
	f.apply(&opts)
	client, err := redlatch.New(nodes, opts)
	if err != nil {
		closeAll(nodes)
		return err
	}
	defer client.Close()
	states, err := client.Init(context.Background(), redlatch.InitOptions{AssumeFresh: f.assumeFresh, Former: former, Retired: f.retired})
	half := slices.ContainsFunc(states, func(s redlatch.NodeState) bool { return s.Reason == redlatch.ReasonBarred })
	if len(states) > 0 && (half || !errors.Is(err, redlatch.ErrConfig)) {
		if say.format == "json" {
			writeStatesJSON(out, states)
		} else {
			writeStates(out, states)
		}
	}
	return err
}

func writeStates(out io.Writer, states []redlatch.NodeState) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range states {
		fmt.Fprintf(w, "%s\t%s\n", s.Node, describe(s))
	}
	w.Flush()
}

func describe(s redlatch.NodeState) string {
	switch {
	case s.Reason == redlatch.ReasonBarred:
		return "barred: it grants nothing until the change of the list is finished"
	case s.Err != nil:
		return message(s.Err)
	case s.Left > 0:
		return fmt.Sprintf("in quarantine for %v yet", s.Left.Round(time.Millisecond))
	case !s.Trusted:
		return "not marked"
	}
	return fmt.Sprintf("trusted; max TTL %v, window %v, quarantine %v", s.Marked.MaxTTL, s.Marked.Window, s.Marked.Quarantine)
}

func writeStatesJSON(out io.Writer, states []redlatch.NodeState) {
	type state struct {
		Node       string   `json:"node"`
		Trusted    bool     `json:"trusted"`
		Left       *float64 `json:"left_ms,omitempty"`
		Reason     string   `json:"reason,omitempty"`
		List       string   `json:"list,omitempty"`
		MaxTTL     *float64 `json:"max_ttl_ms,omitempty"`
		Window     *float64 `json:"window_ms,omitempty"`
		Quarantine *float64 `json:"quarantine_ms,omitempty"`
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
		}
		if s.Err != nil {
			line.Error = message(s.Err)
		}
		enc.Encode(line)
	}
}
