package admin

import (
	"cmp"
	"context"
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
	if err := cmp.Or(a.contradicts(states), oddOneOut(states)); err != nil {
		return states, err
	}
	a.c.Follow(states)
	if err := a.requiresAll(ctx); err != nil {
		return states, err
	}
	a.c.SetGeneration(a.generation(slices.Concat(states, own)))
	least := sitsOut(states)
	states = a.c.MarkAll(ctx, node.Request{Mark: node.MarkBar, TTL: least}, leaving, states)
	if away := names(states, mayServe); len(away) >= protocol.Quorum(len(states)) {
		return states, fmt.Errorf("%w: %d nodes of the former membership do not answer any more, and are a quorum that may go on granting; barred, and granting nothing until the change is finished: %s; %s",
			redlatch.ErrNoQuorum, len(away), cmp.Or(strings.Join(names(states, barred), " "), "none"), runner.RunAgain)
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

// contradicts refuses a former membership with fewer nodes than the markers of
// its nodes name: the missing nodes would continue to grant. If the membership
// has a name, its marker has the number of its nodes, and does not say which.
func (a *Admin) contradicts(former []runner.NodeState) error {
	var names []string
	for _, s := range former {
		names = append(names, s.Node)
	}
	slices.Sort(names)
	for _, s := range former {
		if s.Marked == nil || s.Marked.Barred() || s.Marked.Membership == a.c.Parameters().Membership {
			continue
		}
		if _, nodes, ok := runner.ParseNamed(s.Marked.Nodes); ok && nodes > len(names) {
			return &node.ConfigError{Field: "Former", Value: strings.Join(names, " "), Bound: fmt.Sprintf("%d nodes", nodes), Problem: fmt.Sprintf(
				"%s is marked for %q, and --former lists %d of them: list all; if that server is no longer one of them, remove its marker (redis-cli DEL redlatch:1:marker) and leave it out; nothing was changed",
				s.Node, s.Marked.Nodes, len(names))}
		}
		// The addresses may differ, but not their number.
		marked := strings.Fields(s.Marked.Nodes)
		if slices.Contains(marked, s.Node) && len(marked) > len(names) {
			return &node.ConfigError{Field: "Former", Value: strings.Join(names, " "), Bound: fmt.Sprintf("%q", s.Marked.Nodes), Problem: fmt.Sprintf(
				"former membership differs from the one on %s: %s; nothing was changed",
				s.Node, runner.Difference(strings.Join(names, " "), s.Marked.Nodes))}
		}
	}
	return nil
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
				"%s is quarantined for another %v, the others for %v at most: its clock was wrong when it was marked, and the change would quarantine all nodes that long; nothing was changed; remove its marker (redis-cli DEL redlatch:1:marker), as if it had lost its data, and run this again",
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
