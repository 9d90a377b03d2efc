package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// This file changes the membership: from a former one, which may be in service,
// to the client's own.

// changeList bars the former membership and then brings the new one into
// service. It is safe because of this order: the quarantine begins only when no
// quorum of the former membership can grant or extend any more. The change may
// be interrupted at any point. So until then no node may be marked for the new
// membership either: a client that found such a node in service would mark the
// others.
func (a *Admin) changeList(ctx context.Context, former []redlatch.Node) ([]runner.NodeState, error) {
	barred, err := a.formerMembers(former)
	if err != nil {
		return nil, err
	}
	// Write nothing if too few nodes answer to finish the change.
	states := a.c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, barred)
	if away := count(states, runner.NodeState.Silent); away >= protocol.Quorum(len(states)) {
		return states, fmt.Errorf("%w: %d nodes of the former list do not answer, and are a quorum that may go on granting; nothing was changed: run this again when they answer", redlatch.ErrNoQuorum, away)
	}
	if err := unanswered(a.c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, a.c.Members())); err != nil {
		return states, fmt.Errorf("%w; nothing was changed: all nodes of the new list must answer", err)
	}
	if err := cmp.Or(a.contradicts(states), oddOneOut(states)); err != nil {
		return states, err
	}
	a.c.Follow(states)
	least := sitsOut(states)
	states = a.c.MarkAfter(ctx, node.Request{Mark: node.MarkBar, TTL: least}, barred, states)
	if away := count(states, mayServe); away >= protocol.Quorum(len(states)) {
		var barred []string
		for _, s := range states {
			if s.Reason == node.ReasonBarred {
				barred = append(barred, s.Node)
			}
		}
		return states, fmt.Errorf("%w: %d nodes of the former list do not answer any more, and are a quorum that may go on granting; barred, and granting nothing until the change is finished: %s; %s",
			redlatch.ErrNoQuorum, away, cmp.Or(strings.Join(barred, " "), "none"), runner.RunAgain)
	}
	// Nodes of the former membership only are marked too, so that they can
	// report the new one to its clients.
	least = max(least, sitsOut(states))
	members := slices.Clip(a.c.Members())
	var silent []runner.NodeState
	for i, m := range barred {
		switch {
		case slices.ContainsFunc(a.c.Members(), func(other *runner.Member) bool { return other.Name() == m.Name() }):
		case states[i].Silent():
			silent = append(silent, states[i])
		default:
			members = append(members, m)
		}
	}
	states = a.c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, members)
	states = a.c.MarkAfter(ctx, node.Request{Mark: node.MarkReplace, TTL: least}, members, states)
	after := states[:len(a.c.Members())]
	states = append(states, silent...)
	if err := inside.MarkError(after); err != nil {
		return states, fmt.Errorf("%w; the former list grants nothing any more, and a node that was not marked for the new one grants nothing either: %s", err, runner.RunAgain)
	}
	return states, nil
}

// formerMembers returns the nodes of the former membership, to be marked.
func (a *Admin) formerMembers(former []redlatch.Node) ([]*runner.Member, error) {
	members := make([]*runner.Member, len(former))
	for i, n := range former {
		if n == nil {
			return nil, &node.ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: nil, Bound: "a node"}
		}
		if _, ok := n.(node.Guarded); !ok {
			return nil, &node.ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: n.String(), Bound: "a node that can be marked"}
		}
		members[i] = a.c.NewMember(n)
	}
	return members, nil
}

func count(states []runner.NodeState, is func(runner.NodeState) bool) int {
	n := 0
	for _, s := range states {
		if is(s) {
			n++
		}
	}
	return n
}

// unanswered returns an error if a node has not reported its marker.
func unanswered(states []runner.NodeState) error {
	for i := range states {
		if !states[i].Silent() {
			states[i].Err = nil // the membership of its marker does not matter here
		}
	}
	return inside.MarkError(states)
}

// mayServe reports whether a node that was to be barred may still serve the
// former membership: it is neither barred nor marked for the new one.
func mayServe(s runner.NodeState) bool {
	ours := s.Err == nil && (s.Trusted || s.Reason != "")
	return !ours && s.Reason != node.ReasonBarred
}

// contradicts refuses a former membership with fewer nodes than the markers of
// its nodes name: the missing nodes would continue to grant. A marker with a
// NodeList name cannot be checked.
func (a *Admin) contradicts(former []runner.NodeState) error {
	var names []string
	for _, s := range former {
		names = append(names, s.Node)
	}
	slices.Sort(names)
	for _, s := range former {
		if s.Marked == nil || s.Marked.Barred() || s.Marked.List == a.c.Parameters().List {
			continue
		}
		// The addresses may differ, but not their number.
		marked := strings.Fields(s.Marked.Nodes)
		if slices.Contains(marked, s.Node) && len(marked) > len(names) {
			return &node.ConfigError{Field: "former list", Value: strings.Join(names, " "), Bound: fmt.Sprintf("the list that %s is marked for, %q%s; nothing was changed",
				s.Node, s.Marked.Nodes, runner.Difference(strings.Join(names, " "), s.Marked.Nodes))}
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
			return &node.ConfigError{Field: "node", Value: s.Node, Bound: fmt.Sprintf(
				"one that is quarantined for about as long as the others, %v at the most: it says %v more, so its clock was wrong when it was marked, and all would be quarantined for as long; nothing was changed: remove its marker (redis-cli DEL redlatch:1:marker), as if it had lost its data, and run this again",
				others, s.Left.Round(time.Second))}
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
