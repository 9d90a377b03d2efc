package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// This file changes the membership: from a former one, which may be in service,
// to the client's own.

// changeMembership bars the former membership and then brings the new one into
// service. It is safe because of this order: the quarantine begins only when no
// quorum of the former membership can grant or extend any more. The change may
// be interrupted at any point. So until then no node may be marked for the new
// membership either: a client that found such a node in service would mark the
// others.
//
// The new membership has a higher generation than the former. The same change,
// if it is run again, finds its own generation, and marks only what is missing.
func (a *Admin) changeMembership(ctx context.Context, former []redlatch.Node) ([]runner.NodeState, error) {
	leaving, err := a.formerMembers(former)
	if err != nil {
		return nil, err
	}
	members := a.c.Members()
	// Write nothing if too few nodes answer to finish the change. A silent one is
	// waited for once.
	var states, own []runner.NodeState
	var reading sync.WaitGroup
	reading.Go(func() { states = a.c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, leaving, nil) })
	reading.Go(func() { own = a.c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, members, nil) })
	reading.Wait()
	if away := names(states, runner.NodeState.Silent); len(away) >= protocol.Quorum(len(states)) {
		return states, fmt.Errorf("%w: %d of %d nodes of the former membership do not answer, and are a quorum that may go on granting: %s; nothing was changed: run this again when they answer",
			redlatch.ErrNoQuorum, len(away), len(states), strings.Join(away, " "))
	}
	if err := unanswered(slices.Clone(own)); err != nil {
		return states, fmt.Errorf("%w; nothing was changed: all nodes of the new membership must answer", err)
	}
	a.c.Follow(states)
	generation := a.generation(slices.Concat(states, own))
	servers := a.servers(ctx, slices.Concat(leaving, members), slices.Concat(states, own))
	if err := cmp.Or(a.outlived(states, own, generation, servers, "nothing was changed"), oddOneOut(states)); err != nil {
		return states, err
	}
	if err := a.requiresAll(ctx); err != nil {
		return states, err
	}
	a.c.SetGeneration(generation)
	least := sitsOut(states)
	states = a.c.MarkAll(ctx, node.Request{Mark: node.MarkBar, TTL: least}, leaving, states)
	if away := names(states, mayServe); len(away) >= protocol.Quorum(len(states)) {
		return states, fmt.Errorf("%w: %d nodes of the former membership do not answer any more, and are a quorum that may go on granting; barred, and granting nothing until the change is finished: %s; %s",
			redlatch.ErrNoQuorum, len(away), cmp.Or(strings.Join(names(states, barred), " "), "none"), runner.RunAgain)
	}
	if err := a.outlived(states, own, generation, servers, "barred, and granting nothing until the change is finished: "+strings.Join(names(states, barred), " ")+"; "+runner.RunAgain); err != nil {
		return states, err
	}
	// Nodes of the former membership only are marked too, so that they can
	// report the new one to its clients.
	least = max(least, sitsOut(states))
	all := slices.Clip(members)
	var silent []runner.NodeState
	for i, m := range leaving {
		switch {
		case slices.ContainsFunc(members, func(other *runner.Member) bool { return other.Name() == m.Name() }):
		case states[i].Silent():
			silent = append(silent, states[i])
		default:
			all = append(all, m)
		}
	}
	states = a.c.ReplaceMarkers(ctx, least, all)
	after := states[:len(members)]
	states = append(states, silent...)
	if err := markError(after); err != nil {
		return states, fmt.Errorf("%w; the former membership grants nothing any more, and a node that was not marked for the new one grants nothing either: %s", err, runner.RunAgain)
	}
	return states, nil
}

// generation returns the number of the new membership: that of a change to it
// which was begun before, or one above the highest.
func (a *Admin) generation(states []runner.NodeState) uint64 {
	mine := a.c.Parameters()
	highest, begun := uint64(0), false
	for _, s := range states {
		if s.Marked == nil || s.Marked.Generation < highest {
			continue
		}
		ours := s.Marked.Barred() && s.Marked.Nodes == mine.Nodes || s.Marked.Agrees(mine)
		begun = ours && (begun || s.Marked.Generation > highest)
		highest = s.Marked.Generation
	}
	if begun {
		return highest
	}
	return highest + 1
}

// names returns the names of the nodes that are so.
func names(states []runner.NodeState, is func(runner.NodeState) bool) []string {
	var list []string
	for _, s := range states {
		if is(s) {
			list = append(list, s.Node)
		}
	}
	return list
}

func barred(s runner.NodeState) bool { return s.Reason == node.ReasonBarred }

// formerMembers returns the nodes of the former membership, to be marked.
func (a *Admin) formerMembers(former []redlatch.Node) ([]*runner.Member, error) {
	members := make([]*runner.Member, len(former))
	for i, n := range former {
		if n == nil {
			return nil, &node.ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: nil, Bound: "a node"}
		}
		if _, ok := n.(node.Guarded); !ok {
			return nil, &node.ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: n.String(), Bound: "a node that can be marked", Problem: n.String() + " needs no init: it has no restart guard"}
		}
		members[i] = a.c.NewMember(n)
	}
	return members, nil
}

// unanswered returns an error if a node has not reported its marker.
func unanswered(states []runner.NodeState) error {
	for i := range states {
		if !states[i].Silent() {
			states[i].Err = nil // the membership of its marker does not matter here
		}
	}
	return markError(states)
}

// mayServe reports whether a node that was to be barred may still serve the
// former membership: it is neither barred nor marked for the new one.
func mayServe(s runner.NodeState) bool {
	ours := s.Err == nil && (s.Trusted || s.Reason != "")
	return !ours && s.Reason != node.ReasonBarred
}

// outlived refuses a change that a membership may outlive, so that it would grant
// beside the new one. It is called before the first write, and again after the bar.
//
// A server says by its marker of which membership it is a member, and a barred one
// of which it was. For each that is found so, in either list, those of its servers
// that are out of it must leave no quorum. Out of it are its members that are barred,
// or will be. A server without a marker counts if the membership names it. A server
// that does not answer does not count, nor does one that was only told.
func (a *Admin) outlived(former, own []runner.NodeState, generation uint64, servers map[string]string, then string) error {
	mine := a.c.Parameters()
	all := slices.Concat(former, own)
	for _, s := range all {
		text, _ := memberOf(s)
		if text == "" || s.Marked.Agrees(mine) && s.Marked.Generation >= generation {
			continue // of none, or of the new one
		}
		latest := uint64(0)
		for _, o := range all {
			if other, in := memberOf(o); other == text {
				latest = max(latest, in)
			}
		}
		out := map[string]bool{}
		for i, o := range all {
			// A member that is in the new list is replaced, not barred. That is enough
			// if the membership stays the same.
			leaves := i < len(former) || text == mine.Nodes
			if server := servers[o.Node]; server != "" && isOut(o, text, latest, leaves) {
				out[server] = true
			}
		}
		if size := sizeOf(text); size-len(out) >= protocol.Quorum(size) {
			return &node.ConfigError{Field: "Former", Value: strings.Join(names(former, func(runner.NodeState) bool { return true }), " "), Bound: fmt.Sprintf("%q", text), Problem: fmt.Sprintf(
				"former membership differs from the one on %s: that is %q, of %d nodes, of which this change ends %d, so that the others may go on granting; list all of them in --former, and run this again when they answer; %s",
				s.Node, text, size, len(out), then)}
		}
	}
	return nil
}

// memberOf returns the text of the membership of which a server is a member, or was
// when it was barred, and a generation that it had; empty if of none.
func memberOf(s runner.NodeState) (text string, generation uint64) {
	switch g := s.Marked; {
	case g == nil || g.Told:
		return "", 0
	case g.Barred():
		return g.From, g.Generation - 1
	default:
		return g.Nodes, g.Generation
	}
}

// isOut reports whether a server cannot serve a membership any more, whose highest
// generation that was seen is latest. leaves says that it will be barred if it is a
// member.
func isOut(s runner.NodeState, text string, latest uint64, leaves bool) bool {
	_, _, isNamed := runner.ParseNamed(text)
	listed := !isNamed && slices.Contains(strings.Fields(text), s.Node)
	switch g := s.Marked; {
	case s.Silent():
		return false
	case g == nil:
		return leaves && listed
	case g.Barred() || g.Told || g.Nodes != text:
		// It is marked for something else since, as it says itself, or as its name and
		// a later generation say.
		return g.From == text || listed && (g.Barred() && g.From == "" || g.Generation > latest)
	}
	return leaves
}

// sizeOf returns the number of nodes of a membership.
func sizeOf(text string) int {
	if _, nodes, isNamed := runner.ParseNamed(text); isNamed {
		return nodes
	}
	return len(strings.Fields(text))
}

// servers returns which server is behind each name, so that one with two names
// counts once: its own id, or its name if it has none. One that does not say it is
// left out.
func (a *Admin) servers(ctx context.Context, members []*runner.Member, states []runner.NodeState) map[string]string {
	servers := map[string]string{}
	for i, m := range members {
		id, err := "", states[i].Err
		if n, ok := m.Node().(node.Identifier); ok && !states[i].Silent() {
			ctx, cancel := context.WithTimeout(ctx, a.c.NodeTimeout())
			id, _, err = n.Identity(ctx)
			cancel()
		}
		if err == nil || errors.Is(err, node.ErrConfig) {
			servers[m.Name()] = cmp.Or(id, m.Name())
		}
	}
	return servers
}

// oddOneOut refuses a change while one node is in quarantine far longer than
// all others: its clock was wrong when it was marked, and has been corrected.
// The change would put all nodes in quarantine that long.
func oddOneOut(states []runner.NodeState) error {
	for i, s := range states {
		var others time.Duration
		marked := 0
		for j, o := range states {
			if i != j && o.Marked != nil {
				marked++
				others = max(others, o.Left, o.Marked.Quarantine)
			}
		}
		if marked >= 2 && s.Left > 2*others {
			return &node.ConfigError{Field: "node", Value: s.Node, Bound: "quarantined for about as long as the others", Problem: fmt.Sprintf(
				"%s is quarantined for another %v, the others for %v at most: its clock was wrong when it was marked, and the change would quarantine all nodes that long; nothing was changed; if the others are a quorum in service, and no client has the list of a former membership, remove its marker (redis-cli DEL redlatch:1:marker), as if it had lost its data, and run this again",
				s.Node, s.Left.Round(time.Second), others)}
		}
	}
	return nil
}

// sitsOut returns how long the new membership has to be in quarantine after
// these nodes were in service. A node without a marker does not know the former
// parameters.
func sitsOut(states []runner.NodeState) time.Duration {
	var longest time.Duration
	for _, s := range states {
		longest = max(longest, s.Left)
		if s.Marked != nil {
			longest = max(longest, s.Marked.Quarantine)
		}
	}
	return longest
}
