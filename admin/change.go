package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// This file changes the membership: from a former one, which may be in service,
// to the client's own.

// changeMembership carries out a protocol.Change. It returns the states of the client's
// nodes, and then of the others; if the former membership may be in service yet, those
// of the former one.
func (a *Admin) changeMembership(ctx context.Context, former []redlatch.Node) ([]runner.NodeState, error) {
	leaving, err := a.formerMembers(former)
	if err != nil {
		return nil, err
	}
	members := slices.Concat(leaving, a.c.Members())
	named := make([]string, len(members))
	for i, m := range members {
		named[i] = m.Name()
	}
	states := make([]runner.NodeState, len(members))
	old, own := states[:len(leaving)], states[len(leaving):]
	change := a.c.NewChange(named[:len(leaving)], named[len(leaving):])
	then := "nothing was changed"
	for change.State < protocol.ChangeDone {
		state, asked := change.State, change.Servers
		after, err := a.carryOut(ctx, &change, members, states, own)
		if err != nil {
			return old, err
		}
		for k, i := range asked {
			states[i] = after[k]
			answer := protocol.ChangeAnswer{Server: i, Silent: after[k].Silent(), Differs: after[k].Err != nil, MarkerState: after[k].MarkerState}
			if state == protocol.ReadingMarkers {
				answer.ID = a.server(ctx, members[i], after[k])
			}
			change.Handle(answer)
		}
		if state == protocol.Barring {
			then = "barred, and granting nothing until the change is finished: " + cmp.Or(strings.Join(names(old, barred), " "), "none") + "; " + runner.RunAgain
		}
	}
	err = refused(change.Refusal, old, own, then)
	if err != nil && change.Why != protocol.NotMarked {
		return old, err
	}
	isOurs := func(s runner.NodeState) bool { return slices.Contains(named[len(leaving):], s.Node) }
	return slices.Concat(own, slices.DeleteFunc(old, isOurs)), err
}

// carryOut asks the servers that a change wants to be asked.
func (a *Admin) carryOut(ctx context.Context, c *protocol.Change, members []*runner.Member, states, own []runner.NodeState) ([]runner.NodeState, error) {
	asked, before := make([]*runner.Member, len(c.Servers)), make([]runner.NodeState, len(c.Servers))
	for k, i := range c.Servers {
		asked[k], before[k] = members[i], states[i]
	}
	switch c.State {
	case protocol.Barring:
		// The generation comes last: before, the parameters of the markers are compared.
		mine := c.Mine
		mine.Generation = a.c.Parameters().Generation
		a.c.SetParameters(mine)
		if err := a.requiresAll(ctx); err != nil {
			return nil, err
		}
		mine = *a.c.Parameters()
		mine.Generation = c.Mine.Generation
		a.c.SetParameters(mine)
		return a.c.MarkAll(ctx, node.MarkRequest{Mark: node.MarkBar, Least: c.Least}, asked, before), nil
	case protocol.Replacing:
		return a.c.ReplaceMarkers(ctx, c.Least, asked, before, own), nil
	}
	return a.c.MarkAll(ctx, node.MarkRequest{Mark: node.MarkRead}, asked, nil), nil
}

// refused returns why a change is refused; nil if it is not. old and own are the states
// of the nodes of the former membership and of ours.
func refused(r protocol.Refusal, old, own []runner.NodeState, then string) error {
	of := func(i int) runner.NodeState { return slices.Concat(old, own)[i] }
	switch r.Why {
	case protocol.FormerSilent:
		away := names(old, runner.NodeState.Silent)
		return fmt.Errorf("%w: %d of %d nodes of the former membership do not answer, and are a quorum that may go on granting: %s; %s: run this again when they answer",
			redlatch.ErrNoQuorum, len(away), len(old), strings.Join(away, " "), then)
	case protocol.NewSilent:
		return fmt.Errorf("%w; %s: all nodes of the new membership must answer", unanswered(slices.Clone(own)), then)
	case protocol.WouldOutlive:
		all := func(runner.NodeState) bool { return true }
		return &node.ConfigError{Field: "Former", Value: strings.Join(names(old, all), " "), Bound: fmt.Sprintf("%q", r.Membership), Problem: fmt.Sprintf(
			"former membership differs from the one on %s: that is %q, of %d nodes, of which this change ends %d, so that the others may go on granting; list all of them in --former, and run this again when they answer; %s",
			of(r.Server).Node, r.Membership, r.Size, r.Ends, then)}
	case protocol.OddOneOut:
		return &node.ConfigError{Field: "node", Value: of(r.Server).Node, Bound: "quarantined for about as long as the others", Problem: fmt.Sprintf(
			"%s is quarantined for another %v, the others for %v at most: its clock was wrong when it was marked, and the change would quarantine all nodes that long; %s; if the others are a quorum in service, and no client has the list of a former membership, remove its marker (redis-cli DEL redlatch:1:marker), as if it had lost its data, and run this again",
			of(r.Server).Node, of(r.Server).Left.Round(time.Second), r.Others, then)}
	case protocol.MayServe:
		return fmt.Errorf("%w: %d nodes of the former membership do not answer any more, and are a quorum that may go on granting; %s", redlatch.ErrNoQuorum, r.Ends, then)
	case protocol.NotMarked:
		return fmt.Errorf("%w; the former membership grants nothing any more, and a node that was not marked for the new one grants nothing either: %s", markError(own), runner.RunAgain)
	}
	return nil
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

// server returns which server a node is: its own id, or its name if it has none. It is
// empty if the node does not say it.
func (a *Admin) server(ctx context.Context, m *runner.Member, s runner.NodeState) string {
	id, err := "", s.Err
	if n, ok := m.Node().(node.Identifier); ok && !s.Silent() {
		ctx, cancel := context.WithTimeout(ctx, a.c.NodeTimeout())
		defer cancel()
		id, _, err = n.Identity(ctx)
	}
	if err == nil || errors.Is(err, node.ErrConfig) {
		return cmp.Or(id, m.Name())
	}
	return ""
}
