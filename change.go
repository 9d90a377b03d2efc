package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file changes the list of nodes: from one that may be in service to the
// client's own.

// changeList bars the former list, and then brings the new one into service.
// The order is what makes it safe: a quarantine must begin after no quorum of
// the former list can grant or extend any more. It may be cut off at any point,
// so until then no node may speak for the new list either: a client that takes
// one for a node in service would mark the rest.
func (c *Client) changeList(ctx context.Context, former []Node) ([]NodeState, error) {
	barred, err := c.formerMembers(former)
	if err != nil {
		return nil, err
	}
	// Nothing is written where it could not be brought to an end.
	states := c.markAll(ctx, node.Request{Mark: node.MarkRead}, barred)
	if away := count(states, NodeState.silent); away >= quorumOf(len(states)) {
		return states, fmt.Errorf("%w: %d nodes of the former list do not answer, and are a quorum that may go on granting; nothing was changed: run this again when they answer", ErrNoQuorum, away)
	}
	if err := unanswered(c.markAll(ctx, node.Request{Mark: node.MarkRead}, c.members)); err != nil {
		return states, fmt.Errorf("%w; nothing was changed: all nodes of the new list must answer", err)
	}
	if err := cmp.Or(c.guard.contradicts(states), oddOneOut(states)); err != nil {
		return states, err
	}
	c.guard.follow(states)
	least := sitsOut(states)
	states = c.markAfter(ctx, node.Request{Mark: node.MarkBar, TTL: least}, barred, states)
	if away := count(states, NodeState.mayServe); away >= quorumOf(len(states)) {
		var barred []string
		for _, s := range states {
			if s.Reason == node.ReasonBarred {
				barred = append(barred, s.Node)
			}
		}
		return states, fmt.Errorf("%w: %d nodes of the former list do not answer any more, and are a quorum that may go on granting; barred, and granting nothing until the change is finished: %s; %s",
			ErrNoQuorum, away, cmp.Or(strings.Join(barred, " "), "none"), runAgain)
	}
	// Those that are on the former list alone are marked too, so that they can
	// tell its clients the new one.
	least = max(least, sitsOut(states))
	members := slices.Clip(c.members)
	var silent []NodeState
	for i, m := range barred {
		switch {
		case slices.ContainsFunc(c.members, func(other *member) bool { return other.name == m.name }):
		case states[i].silent():
			silent = append(silent, states[i])
		default:
			members = append(members, m)
		}
	}
	states = c.markAll(ctx, node.Request{Mark: node.MarkRead}, members)
	states = c.markAfter(ctx, node.Request{Mark: node.MarkReplace, TTL: least}, members, states)
	after := states[:len(c.members)]
	states = append(states, silent...)
	if err := statesError(after, len(after)); err != nil {
		return states, fmt.Errorf("%w; the former list grants nothing any more, and a node that was not marked for the new one grants nothing either: %s", err, runAgain)
	}
	return states, nil
}

// runAgain is what to do about a change of list that has stopped half way.
const runAgain = "run the same change again when all nodes answer, or one back to the former list (redlatch init --help)"

// formerMembers are the nodes of the former list, to be marked.
func (c *Client) formerMembers(former []Node) ([]*member, error) {
	members := make([]*member, len(former))
	for i, n := range former {
		if n == nil {
			return nil, &ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: nil, Bound: "a node"}
		}
		if _, ok := n.(node.Guarded); !ok {
			return nil, &ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: n.String(), Bound: "a node that can be marked"}
		}
		members[i] = &member{node: n, name: n.String(), client: c}
	}
	return members, nil
}

func count(states []NodeState, is func(NodeState) bool) int {
	n := 0
	for _, s := range states {
		if is(s) {
			n++
		}
	}
	return n
}

// unanswered returns an error if a node has said nothing of its marker.
func unanswered(states []NodeState) error {
	for i := range states {
		if !states[i].silent() {
			states[i].Err = nil // which list it is marked for does not matter here
		}
	}
	return statesError(states, len(states))
}

// silent reports whether the node has said nothing of its marker.
func (s NodeState) silent() bool { return s.Err != nil && !errors.Is(s.Err, ErrConfig) }

// mayServe reports whether a node that was to be barred may serve the former
// list yet: it is neither barred nor marked for the new one.
func (s NodeState) mayServe() bool {
	ours := s.Err == nil && (s.Trusted || s.Reason != "")
	return !ours && s.Reason != node.ReasonBarred
}

// contradicts refuses a former list that is shorter than the one its nodes are
// marked for: those that were left out would go on granting. A marker that has
// the list under a name says nothing about that.
func (g *guard) contradicts(former []NodeState) error {
	var names []string
	for _, s := range former {
		names = append(names, s.Node)
	}
	slices.Sort(names)
	for _, s := range former {
		if s.Marked == nil || s.Marked.Barred() || s.Marked.List == g.bounds().List {
			continue
		}
		// Some may be reached by other addresses; but they are as many.
		marked := strings.Fields(s.Marked.Nodes)
		if slices.Contains(marked, s.Node) && len(marked) > len(names) {
			return &ConfigError{Field: "former list", Value: strings.Join(names, " "), Bound: fmt.Sprintf("the list that %s is marked for, %q%s; nothing was changed",
				s.Node, s.Marked.Nodes, difference(strings.Join(names, " "), s.Marked.Nodes))}
		}
	}
	return nil
}

// oddOneOut refuses a change while one node sits out for far longer than all
// others: its clock was wrong when it was marked, and is right again. All would
// have to sit out for as long.
func oddOneOut(states []NodeState) error {
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
			return &ConfigError{Field: "node", Value: s.Node, Bound: fmt.Sprintf(
				"one that sits out for about as long as the others, %v at the most: it says %v yet, so its clock was wrong when it was marked, and all would sit out for as long; nothing was changed: remove its marker (redis-cli DEL redlatch:1:marker), as if it had lost its data, and run this again",
				others, s.Left.Round(time.Second))}
		}
	}
	return nil
}

// sitsOut returns how long nodes have to sit out after these were in service:
// a node that carries no marker cannot tell by itself what the former bounds
// were.
func sitsOut(states []NodeState) time.Duration {
	var longest time.Duration
	for _, s := range states {
		longest = max(longest, s.Left)
		if s.Marked != nil {
			longest = max(longest, s.Marked.Quarantine)
		}
	}
	return longest
}
